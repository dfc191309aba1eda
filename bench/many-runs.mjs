// Two hundred runs at once, read by twenty clients: how long an event takes from the engine to its reader.
import { Agent } from 'node:http';
import { cpuOf, memoryOf } from './lib/cost.mjs';
import { median, share, tell } from './lib/figures.mjs';
import { readFrames, readUntil } from './lib/frames.mjs';
import { peer } from './lib/peers.mjs';
import { newFolder, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const RUNS = 200;
const CLIENTS = 20;
const EVENTS = 500;
// Ten events every tenth of a second, as agents talk when they talk fast.
const prompt = `[[events ${EVENTS} 64]] [[pace 10 100]]`;

export default {
  name: 'many-runs', ids: ['B11'], title: `${RUNS} runs at once of ${EVENTS} events each, read by ${CLIENTS} clients`,
  says: 'Each engine prints ten events every tenth of a second; each client reads ten runs. The time of an event is from the moment in which the engine made it until its client has it. All on the same two cores: server, clients and two hundred engines, which Parley starts and sandbox-agent has started before.',
  figures: { 'ms p50': { better: 'less' }, 'ms p99': { better: 'less' }, lost: { better: 'less' }, 'server µs/event': { better: 'less' }, 'server MiB': { better: 'less' } },
  plots: ['ms p99'],
  bounds: 'What bounds it: each run stores what it prints in transactions of its own, about 2,000 a second here, and each costs the one thread about a millisecond with its files. Transactions that are shared by runs are the next step (docs/NEXT.md).',
  rounds: 5,
  async open() {
    return {
      systems: [
        { who: 'Parley', round: throughParley },
        ...(peer('sandbox-agent') ? [{ who: peer('sandbox-agent').name, round: throughSandboxAgent }] : []),
      ],
      close: async () => {},
    };
  },
  aims: (of) => [{ aim: 'p99 below 100 ms, none lost', got: `${tell(of('Parley', 'ms p99'))} ms, ${tell(of('Parley', 'lost'))} lost`, reached: of('Parley', 'ms p99') < 100 && of('Parley', 'lost') === 0 }],
};

const numbers = Array.from({ length: RUNS }, (_, number) => number);
const MESSAGE = /"text":"(\d{13}) x/;

function listen() {
  const times = [];
  return { times, onFrame: (_id, frame) => {
    const made = MESSAGE.exec(frame.latin1Slice(0, frame.length))?.[1];
    if (made !== undefined) times.push(Date.now() - Number(made));
  } };
}

function figuresOf(times, cpu, pid) {
  return { 'ms p50': median(times), 'ms p99': share(times, 0.99), lost: RUNS * EVENTS - times.length, 'server µs/event': cpu / (RUNS * EVENTS), 'server MiB': memoryOf(pid) };
}

async function throughParley() {
  const folder = newFolder();
  const server = await startParley(folder, { slots: RUNS });
  const agents = Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: RUNS / CLIENTS }));
  const before = cpuOf(server.pid);
  const { times, onFrame } = listen();
  const runs = await Promise.all(numbers.map(() => server.create(prompt)));
  await Promise.all(runs.map(({ run_id: runId }, number) => readFrames(`${server.url}/v1/runs/${runId}/rasp`, { headers: server.headers, agent: agents[number % CLIENTS], onFrame })));
  const figures = figuresOf(times, cpuOf(server.pid) - before, server.pid);
  agents.forEach((agent) => agent.destroy());
  await server.stop();
  removeFolder(folder);
  return figures;
}

async function throughSandboxAgent() {
  const folder = newFolder();
  const server = await startSandboxAgent(folder);
  const agents = Array.from({ length: CLIENTS }, () => new Agent({ keepAlive: true, maxSockets: RUNS / CLIENTS }));
  const sessions = [];
  for (const number of numbers) sessions.push(await server.open(`m${number}`));
  const before = cpuOf(server.pid);
  const { times, onFrame } = listen();
  const readings = numbers.map((number) => readUntil(server.stream(`m${number}`), '"stopReason"', { agent: agents[number % CLIENTS], onFrame }));
  await Promise.all(numbers.map((number) => server.prompt(`m${number}`, sessions[number], prompt)));
  await Promise.all(readings.map((reading) => reading.over()));
  const figures = figuresOf(times, cpuOf(server.pid) - before, server.pid);
  agents.forEach((agent) => agent.destroy());
  await server.stop();
  removeFolder(folder);
  return figures;
}
