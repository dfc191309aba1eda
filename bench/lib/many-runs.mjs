// Two hundred concurrent runs, read by twenty clients: how long an event takes from the engine to its reader. The two
// benches differ only in their engine.
import { existsSync, statSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { openDatabase } from '../../dist/store/sqlite/open-database.js';
import { cpuOf, grown, memoryOf, writtenOf } from './cost.mjs';
import { median, now, share, sum } from './figures.mjs';
import { lossOf, readFrames, readUntil } from './frames.mjs';
import { absent, peer } from './peers.mjs';
import { earlierVersion, startParley, startSandboxAgent, withServer } from './systems.mjs';

export const RUNS = 200;
export const CLIENTS = 20;
export const EVENTS = 500;
// Ten events every tenth of a second, like a fast agent.
const signIn = (folder) => join(folder, 'go');
const promptOf = (sign) => `[[events ${EVENTS} 64]] [[pace 10 100]] [[when ${sign}]]`;

export const figures = {
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
  'bytes written/event': {
    better: 'less',
    description:
      'passed to the file system by the server (write_bytes of /proc/PID/io), from the first event until all runs ' +
      'have ended',
  },
  'bytes kept/event': {
    better: 'less',
    description: 'by which the files of the database have grown when all runs have ended, with the write-ahead log',
  },
  'bytes in use/event': {
    better: 'less',
    description: 'by which the pages of the database that hold data have grown when all runs have ended',
  },
  'bytes in use/event, merged': {
    better: 'less',
    description: 'the same after the server has merged all flushes and has stopped',
  },
};

export const description =
  'Each engine prints ten events every tenth of a second; each client reads ten runs. The time of an event is from ' +
  'its creation in the engine until its client has it. Everything shares the same two cores: server, clients and two ' +
  'hundred engines, which have all started before the first of them prints.';

// `engine` is a path; empty: the script that all benches use. With PARLEY_BENCH_BEFORE=FOLDER, a built tree of an
// earlier version is measured in the same rounds.
export function openManyRuns(engine) {
  const before = earlierVersion();
  const parley = (program) => ({ slots: RUNS, engine, ...(program ? { program } : {}) });
  const system = (who, program) => ({ who, round: () => withServer(startParley, throughParley, parley(program)) });
  return {
    systems: [
      system('Parley'),
      ...(before ? [system(before.who, before.program)] : []),
      peer('sandbox-agent')
        ? {
            who: peer('sandbox-agent').name,
            round: () => withServer(startSandboxAgent, throughSandboxAgent, { engine }),
          }
        : absent('sandbox-agent'),
    ],
    close: async () => {},
  };
}

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
      times.all.push(now() - Number(made) / 1000);
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

function databaseSize(data) {
  const files = ['parley.db', 'parley.db-wal'].map((name) => join(data, name)).filter((path) => existsSync(path));
  return sum(files.map((path) => statSync(path).size));
}

// Without free pages; pages that are only in the write-ahead log count.
async function usedBytes(data) {
  const db = await openDatabase(join(data, 'parley.db'), { readOnly: true });
  const read = (name) => Object.values(db.prepare(`PRAGMA ${name}`).get())[0];
  const bytes = (read('page_count') - read('freelist_count')) * read('page_size');
  db.close();
  return bytes;
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
  const [written, kept, used] = [writtenOf(server.pid), databaseSize(server.data), await usedBytes(server.data)];
  const measured = await measure(folder, server.pid, times, () => Promise.all(readings));
  for (const runId of runs) await server.waitUntilIdle(runId);
  agents.forEach((agent) => agent.destroy());
  const costs = {
    'bytes written/event': grown(written, writtenOf(server.pid), RUNS * EVENTS),
    'bytes kept/event': grown(kept, databaseSize(server.data), RUNS * EVENTS),
    'bytes in use/event': grown(used, await usedBytes(server.data), RUNS * EVENTS),
  };
  await server.stop();
  const merged = grown(used, await usedBytes(server.data), RUNS * EVENTS);
  return { ...measured, ...costs, 'bytes in use/event, merged': merged };
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
  const measured = await measure(folder, server.pid, times, async () => {
    await Promise.all(prompts);
    return Promise.all(readings.map((reading) => reading.over()));
  });
  agents.forEach((agent) => agent.destroy());
  return measured;
}
