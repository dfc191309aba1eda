// A reader of a thousand events a second while a hundred thousand are printed, which then reads as fast as it can.
import { format } from './lib/figures.mjs';
import { grown, memoryOf, peakOf } from './lib/cost.mjs';
import { countFrames, lossOf, readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { startParley, startSandboxAgent, withServer } from './lib/systems.mjs';

const EVENTS = 100_000;
const SLOW = 1000;
// Loading during a first turn is not part of the cost of a slow reader.
const WARM = 1000;
const prompt = `[[events ${EVENTS} 64]]`;

export default {
  name: 'slow-reader',
  ids: ['B4'],
  title: `A reader of ${SLOW.toLocaleString('en')} events a second while ${EVENTS.toLocaleString('en')} are printed`,
  description:
    'When the engine has finished, the reader reads the rest as fast as it can. Each round has its own server, so ' +
    'that the peak belongs to this reader alone. For comparison: the same turn with a reader that keeps up, and ' +
    'without a reader.',
  figures: {
    lost: { better: 'less', right: 0 },
    twice: { better: 'less', right: 0 },
    'grew MiB': {
      better: 'less',
      description: 'peak of the server until the reader has everything, minus its memory before',
    },
    'turn ms': { better: null, description: 'how long the engine took; shows whether the reader slowed it down' },
  },
  plots: ['lost', 'grew MiB'],
  bounds:
    'The limit: the turn takes nearly half of this memory even without a reader, because V8 makes its heap larger ' +
    'under load. The rest is data that is being sent and not yet collected: as soon as it may, the slow reader ' +
    'reads all frames from the store at once. The growth is bounded and does not depend on the number of events: ' +
    'fifteen times as many, tried once, took less than twice as much.',
  rounds: 5,
  async open() {
    return {
      systems: [
        { who: 'Parley', round: () => withServer(startParley, (server) => readParley(server, slowly())) },
        {
          who: 'Parley, a reader that keeps up',
          round: () => withServer(startParley, (server) => readParley(server, { hurry: () => {} })),
        },
        { who: 'Parley, no reader', round: () => withServer(startParley, (server) => readParley(server, null)) },
        peer('sandbox-agent')
          ? { who: peer('sandbox-agent').name, round: () => withServer(startSandboxAgent, slowSandboxAgent) }
          : absent('sandbox-agent'),
      ],
      close: async () => {},
    };
  },
  aims: (of) => [
    {
      aim: 'none lost, none twice, and less than 64 MiB more memory',
      got:
        `${format(of('Parley', 'lost'))} lost, ${format(of('Parley', 'twice'))} twice, ` +
        `${format(of('Parley', 'grew MiB'))} MiB more`,
      reached: of('Parley', 'lost') === 0 && of('Parley', 'twice') === 0 && of('Parley', 'grew MiB') < 64,
    },
  ],
};

// Stops reading for as long as the slow reader would need for these events.
function slowly() {
  const startedAt = Date.now();
  let fast = false;
  return {
    hurry: () => (fast = true),
    pace: (response, { frames }) => {
      const ahead = (frames / SLOW) * 1000 - (Date.now() - startedAt);
      if (fast || ahead <= 0) return;
      response.pause();
      const wait = setInterval(() => {
        if (!fast && Date.now() - startedAt < (frames / SLOW) * 1000) return;
        clearInterval(wait);
        response.resume();
      }, 20);
    },
  };
}

async function readParley({ create, waitUntilIdle, url, headers, pid }, reader) {
  await waitUntilIdle((await create(`[[events ${WARM} 64]]`)).run_id);
  const before = memoryOf(pid);
  const messages = countFrames('"agent.message.final"');
  const begin = Date.now();
  const { run_id: runId } = await create(prompt);
  const reading =
    reader &&
    readFrames(`${url}/v1/runs/${runId}/rasp`, { headers, after: 0, onFrame: messages.frame, pace: reader.pace });
  await waitUntilIdle(runId);
  const turn = Date.now() - begin;
  reader?.hurry();
  const read = await reading;
  const figures = { 'grew MiB': grown(before, peakOf(pid)), 'turn ms': turn };
  return read ? { ...lossOf(read, messages.count, EVENTS + 1), ...figures } : figures;
}

async function slowSandboxAgent(server) {
  const session = await server.open('slow');
  await server.prompt('slow', session, `[[events ${WARM} 64]]`);
  // Two responses, the events, and the end of the turn, which are sent again to readers that connect later.
  const known = WARM + 3;
  const before = memoryOf(server.pid);
  const reader = slowly();
  const messages = countFrames('agent_message_chunk');
  const reading = readUntil(server.stream('slow'), 'none of these', {
    onFrame: (id, frame) => id > known && messages.frame(id, frame),
    pace: reader.pace,
  });
  const begin = Date.now();
  await server.prompt('slow', session, prompt);
  const turn = Date.now() - begin;
  reader.hurry();
  const read = await reading.over();
  return { ...lossOf(read, messages.count, EVENTS), 'grew MiB': grown(before, peakOf(server.pid)), 'turn ms': turn };
}
