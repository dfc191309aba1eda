// Two hundred concurrent runs, read by twenty clients: how long an event takes from the engine to its reader.
import { writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf, grown, memoryOf } from './lib/cost.mjs';
import { median, now, share, sum, format } from './lib/figures.mjs';
import { lossOf, readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { startParley, startSandboxAgent, withServer } from './lib/systems.mjs';

const RUNS = 200;
const CLIENTS = 20;
const EVENTS = 500;
// Ten events every tenth of a second, like a fast agent.
const signIn = (folder) => join(folder, 'go');
const promptOf = (sign) => `[[events ${EVENTS} 64]] [[pace 10 100]] [[when ${sign}]]`;

export default {
  name: 'many-runs',
  ids: ['B11'],
  title: `${RUNS} concurrent runs of ${EVENTS} events each, read by ${CLIENTS} clients`,
  description:
    'Each engine prints ten events every tenth of a second; each client reads ten runs. The time of an event is ' +
    'from its creation in the engine until its client has it. Everything shares the same two cores: server, ' +
    'clients and two hundred engines, which have all started before the first of them prints.',
  figures: {
    'ms p50': { better: 'less' },
    'ms p99': { better: 'less' },
    'events/s': {
      better: 'more',
      description: 'of all runs together, until the last event is at its client; the engines print 20,000',
    },
    lost: { better: 'less', right: 0 },
    twice: { better: 'less', right: 0 },
    'server µs/event': { better: 'less' },
    'server MiB': { better: 'less' },
  },
  plots: ['ms p99'],
  bounds:
    'The limit: the two cores, which two hundred engines, twenty clients and the server share, and the one thread ' +
    'of the server. Events of all runs that are written at the same time share one transaction ([decision ' +
    '0011](decisions/0011-writes-of-a-moment.md)), so the number of runs does not limit the speed; but while the ' +
    'thread waits for the disk or for a core, the events of all runs wait.',
  rounds: 5,
  async open() {
    return {
      systems: [
        { who: 'Parley', round: () => withServer(startParley, throughParley, { slots: RUNS }) },
        peer('sandbox-agent')
          ? { who: peer('sandbox-agent').name, round: () => withServer(startSandboxAgent, throughSandboxAgent) }
          : absent('sandbox-agent'),
      ],
      close: async () => {},
    };
  },
  aims: (of) => [
    {
      aim: 'p99 below 100 ms, none lost, none twice',
      got:
        `${format(of('Parley', 'ms p99'))} ms, ${format(of('Parley', 'lost'))} lost, ` +
        `${format(of('Parley', 'twice'))} twice`,
      reached: of('Parley', 'ms p99') < 100 && of('Parley', 'lost') === 0 && of('Parley', 'twice') === 0,
    },
  ],
};

const numbers = Array.from({ length: RUNS }, (_, number) => number);
const MESSAGE = /"text":"(\d{13}) x/;
const HEARD_MS = 1000;

function listen() {
  const times = { all: [], last: 0 };
  return {
    times,
    onFrame: (_id, frame) => {
      const made = MESSAGE.exec(frame.latin1Slice(0, frame.length))?.[1];
      if (made === undefined) return;
      times.all.push(Date.now() - Number(made));
      times.last = now();
    },
  };
}

const openAgents = () =>
  Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: RUNS / CLIENTS }));

// Measures from the signal at which the engines start to print until `readAll` returns the counts of all readers.
async function measure(folder, pid, times, readAll) {
  const before = cpuOf(pid);
  const begin = now();
  writeFileSync(signIn(folder), '');
  const reads = await readAll();
  // The readers of sandbox-agent listen for a while after the last event.
  const seconds = (times.last - begin) / 1000;
  const seen = { missing: sum(reads.map(({ missing }) => missing)), twice: sum(reads.map(({ twice }) => twice)) };
  return {
    'ms p50': median(times.all),
    'ms p99': share(times.all, 0.99),
    'events/s': times.all.length / seconds,
    ...lossOf(seen, times.all.length, RUNS * EVENTS),
    'server µs/event': grown(before, cpuOf(pid), RUNS * EVENTS),
    'server MiB': memoryOf(pid),
  };
}

async function throughParley(server, folder) {
  const agents = openAgents();
  const { times, onFrame } = listen();
  const readings = [];
  const firstOutputs = [];
  const runs = [];
  for (const number of numbers) {
    const { run_id: runId } = await server.create(promptOf(signIn(folder)));
    runs.push(runId);
    firstOutputs.push(
      new Promise((resolve) => {
        const reading = readFrames(`${server.url}/v1/runs/${runId}/rasp`, {
          headers: server.headers,
          agent: agents[number % CLIENTS],
          after: 0,
          onFrame: (id, frame) => {
            // The first output of its engine.
            if (frame.indexOf('"stdout"') >= 0) resolve();
            onFrame(id, frame);
          },
        });
        readings.push(reading);
        // If the reading fails, the final check of all runs reports it.
        reading.then(resolve, resolve);
      }),
    );
  }
  await Promise.all(firstOutputs);
  const figures = await measure(folder, server.pid, times, () => Promise.all(readings));
  for (const runId of runs) await server.waitUntilIdle(runId);
  agents.forEach((agent) => agent.destroy());
  return figures;
}

async function throughSandboxAgent(server, folder) {
  const agents = openAgents();
  const { times, onFrame } = listen();
  const readings = [];
  const prompts = [];
  for (const number of numbers) {
    const session = await server.open(`m${number}`);
    readings.push(readUntil(server.stream(`m${number}`), '"stopReason"', { agent: agents[number % CLIENTS], onFrame }));
    prompts.push(server.prompt(`m${number}`, session, promptOf(signIn(folder))));
  }
  await pause(HEARD_MS);
  const figures = await measure(folder, server.pid, times, async () => {
    await Promise.all(prompts);
    return Promise.all(readings.map((reading) => reading.over()));
  });
  agents.forEach((agent) => agent.destroy());
  return figures;
}
