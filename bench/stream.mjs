// Events from the engine through a server to a client that reads as fast as it can, live.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { format } from './lib/figures.mjs';
import { cpuOf, grown, peakOf, writtenOf } from './lib/cost.mjs';
import { countFrames, lossOf, readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import {
  earlierVersion,
  newFolder,
  pinMyself,
  recordWithAcpx,
  removeFolder,
  startParley,
  startSandboxAgent,
} from './lib/systems.mjs';
import { consume } from './lib/consumers.mjs';

const PROGRAM = fileURLToPath(new URL('../bin/parley.js', import.meta.url));
const EVENTS = 100_000;
const BYTES = 64;
const RECORDED = 5000;
const prompt = `[[events ${EVENTS} ${BYTES}]]`;

export default {
  name: 'stream',
  ids: ['B3'],
  title: `${EVENTS.toLocaleString('en')} events of ${BYTES} bytes to an SSE client, live`,
  description:
    'The engine prints as fast as its output is read. Measured from the first event at the client to the last. ' +
    'Parley stores each event before it sends it, sandbox-agent keeps the last 1,024 in memory, and acpx records ' +
    'them in files (its reader is its own output; it gets fewer events, because 100,000 would take minutes). ' +
    'After the measurement, `parley verify` checks each run that Parley has stored.',
  pinned: 'The server has its own core; engine and client share the other.',
  figures: {
    'events/s': { better: 'more' },
    'server µs/event': { better: 'less' },
    lost: { better: 'less', right: 0 },
    twice: { better: 'less', right: 0 },
    'not verified': {
      better: 'less',
      right: 0,
      description: 'runs in which `parley verify` finds a difference',
    },
    'peak MiB': { better: 'less', description: 'of the server, since its start' },
    'written B/event': { better: null, description: 'bytes that the server passed to the file system' },
  },
  plots: ['events/s', 'lost'],
  bounds:
    'The limit: one thread on one core does everything. Parsing an event takes more than a third of that time ' +
    '(compare the parser with "all stored" in [in-process](#in-process)); reading and JSON.parse alone take an ' +
    'eighth. sandbox-agent spends as much and stores nothing; half of its time would leave hardly any for ' +
    'conversation, digests, log, database, files and HTTP. More threads would help on more cores, but here each ' +
    'server has one core. Each event is written four times, before its reader has it or soon after: as plain text ' +
    'to the log of the engine and to the files next to the database, and, in segments of 32 KiB and more ' +
    'compressed with brotli, to the write-ahead log and to the database itself. [profile](#profile) shows how ' +
    'much of the time is storing, and how much of that is waiting for the disk; [decision ' +
    '0011](decisions/0011-writes-of-a-moment.md) explains why the store has no thread of its own.',
  async open() {
    pinMyself();
    const folders = [newFolder(), newFolder(), newFolder()];
    const parley = await startParley(folders[0], { pinned: true });
    const runs = [];
    const earlier = earlierVersion();
    const before = earlier && (await startParley(folders[2], { pinned: true, program: earlier.program }));
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[1], { pinned: true }) : null;
    return {
      systems: [
        {
          who: 'bare',
          note: 'the engine read and JSON.parsed, no server',
          round: async () => ({ 'events/s': (await consume('bare', { events: EVENTS, bytes: BYTES }))['events/s'] }),
        },
        {
          who: 'Parley',
          round: () => throughParley(parley, runs),
          after: () => ({ 'not verified': runs.filter((runId) => !verifies(runId, parley.data)).length }),
        },
        ...(before ? [{ who: earlier.who, round: () => throughParley(before, []) }] : []),
        other
          ? { who: peer('sandbox-agent').name, round: (round) => throughSandboxAgent(other, `s${round}`) }
          : absent('sandbox-agent'),
        peer('acpx')
          ? { who: peer('acpx').name, note: `${RECORDED.toLocaleString('en')} events`, round: throughAcpx }
          : absent('acpx'),
      ],
      close: async () => {
        await parley.stop();
        await before?.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'at least twice the events/s of sandbox-agent',
      got: `${format(of('Parley', 'events/s') / of('sandbox-agent', 'events/s'))} times`,
      reached: of('Parley', 'events/s') >= 2 * of('sandbox-agent', 'events/s'),
    },
    {
      aim: 'none lost, none twice, all stored',
      got:
        `${format(of('Parley', 'lost'))} lost, ${format(of('Parley', 'twice'))} twice, ` +
        `${format(of('Parley', 'not verified'))} runs not verified`,
      reached: ['lost', 'twice', 'not verified'].every((name) => of('Parley', name) === 0),
    },
  ],
};

async function throughParley({ create, url, headers, pid }, runs) {
  const before = cpuOf(pid);
  const written = writtenOf(pid);
  const messages = countFrames('"agent.message.final"');
  const { run_id: runId } = await create(prompt);
  runs.push(runId);
  const read = await readFrames(`${url}/v1/runs/${runId}/rasp`, { headers, after: 0, onFrame: messages.frame });
  if (!read.over) throw new Error('the stream ended without its end event');
  // One more than was asked for: it says that it is done.
  return {
    'events/s': EVENTS / (messages.ms / 1000),
    'server µs/event': grown(before, cpuOf(pid), EVENTS),
    ...lossOf(read, messages.count, EVENTS + 1),
    'peak MiB': peakOf(pid),
    'written B/event': grown(written, writtenOf(pid), EVENTS),
  };
}

function verifies(runId, data) {
  return (
    spawnSync(process.execPath, [PROGRAM, 'verify', runId, '--data', data], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { PATH: process.env.PATH, HOME: data },
    }).status === 0
  );
}

async function throughSandboxAgent(server, name) {
  const session = await server.open(name);
  const before = cpuOf(server.pid);
  const messages = countFrames('agent_message_chunk');
  const reading = readUntil(server.stream(name), '"stopReason"', { onFrame: messages.frame });
  await server.prompt(name, session, prompt);
  const read = await reading.over();
  return {
    'events/s': messages.count / (messages.ms / 1000),
    'server µs/event': grown(before, cpuOf(server.pid), EVENTS),
    ...lossOf(read, messages.count, EVENTS),
    'peak MiB': peakOf(server.pid),
  };
}

async function throughAcpx() {
  const folder = newFolder();
  try {
    const times = await recordWithAcpx(folder, `[[events ${RECORDED} ${BYTES}]]`);
    return {
      'events/s': times.length / ((times.at(-1) - times[0]) / 1000),
      ...lossOf({ missing: 0, twice: 0 }, times.length, RECORDED),
    };
  } finally {
    removeFolder(folder);
  }
}
