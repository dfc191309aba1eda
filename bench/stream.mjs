// Events from the engine through a server to a client that reads as fast as it can, while they happen.
import { tell } from './lib/figures.mjs';
import { cpuOf, peakOf } from './lib/cost.mjs';
import { countFrames, readFrames, readUntil } from './lib/frames.mjs';
import { peer } from './lib/peers.mjs';
import { newFolder, pinMyself, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';
import { consume } from './lib/consumers.mjs';

const EVENTS = 100_000;
const BYTES = 64;
const prompt = `[[events ${EVENTS} ${BYTES}]]`;

export default {
  name: 'stream', ids: ['B3'], title: `${EVENTS.toLocaleString('en')} events of ${BYTES} bytes to an SSE client, live`,
  says: 'The engine prints as fast as it is read; the server has a core of its own, engine and client share the other. From the first event at the client to the last. Parley stores each event before it is sent, sandbox-agent keeps the last 1,024 in memory.',
  figures: { 'events/s': { better: 'more' }, 'server µs/event': { better: 'less' }, lost: { better: 'less' }, 'peak MiB': { better: 'less', says: 'of the server, since it began' } },
  plots: ['events/s', 'lost'],
  bounds: 'What bounds it: one thread does all of it, and each event is written four times before its reader has it or soon after (log, write-ahead log, database, files: 2.5 KB for 64 bytes of text). [profile](#profile) shows that a third of the time is storing, most of it waiting for the disk. To overlap that wait with other work, the store would have to live in a thread of its own.',
  async open() {
    pinMyself();
    const folders = [newFolder(), newFolder()];
    const parley = await startParley(folders[0], { pinned: true });
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[1], { pinned: true }) : null;
    return {
      systems: [
        { who: 'bare', note: 'the engine read and JSON.parsed, no server', round: async () => ({ 'events/s': (await consume('bare', { events: EVENTS, bytes: BYTES }))['events/s'] }) },
        { who: 'Parley', round: () => throughParley(parley) },
        ...(other ? [{ who: peer('sandbox-agent').name, round: (round) => throughSandboxAgent(other, `s${round}`) }] : []),
      ],
      close: async () => {
        await parley.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    { aim: 'at least twice the events/s of sandbox-agent', got: `${tell(of('Parley', 'events/s') / of('sandbox-agent', 'events/s'))} times`, reached: of('Parley', 'events/s') >= 2 * of('sandbox-agent', 'events/s') },
    { aim: 'none lost, all stored', got: `${tell(of('Parley', 'lost'))} lost`, reached: of('Parley', 'lost') === 0 },
  ],
};

async function throughParley({ create, url, headers, pid }) {
  const before = cpuOf(pid);
  const messages = countFrames('"agent.message.final"');
  const { run_id: runId } = await create(prompt);
  const { frames, last, over } = await readFrames(`${url}/v1/runs/${runId}/rasp`, { headers, onFrame: messages.frame });
  if (!over) throw new Error('the stream did not end as one that is over');
  // One more than was asked for: it says that it is done.
  return { 'events/s': EVENTS / (messages.ms / 1000), 'server µs/event': (cpuOf(pid) - before) / EVENTS, lost: EVENTS + 1 - messages.count + (last - frames), 'peak MiB': peakOf(pid) };
}

async function throughSandboxAgent(server, name) {
  const session = await server.open(name);
  const before = cpuOf(server.pid);
  const messages = countFrames('agent_message_chunk');
  const reading = readUntil(server.stream(name), '"stopReason"', { onFrame: messages.frame });
  await server.prompt(name, session, prompt);
  await reading.over();
  return { 'events/s': messages.count / (messages.ms / 1000), 'server µs/event': (cpuOf(server.pid) - before) / EVENTS, lost: EVENTS - messages.count, 'peak MiB': peakOf(server.pid) };
}
