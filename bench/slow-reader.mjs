// A reader that takes a thousand events a second while a hundred thousand are printed, and then as many as it can.
import { tell } from './lib/figures.mjs';
import { grown, memoryOf, peakOf } from './lib/cost.mjs';
import { countFrames, lossOf, readFrames, readUntil } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { startParley, startSandboxAgent, withServer } from './lib/systems.mjs';

const EVENTS = 100_000;
const SLOW = 1000;
// What a first turn loads is not what a slow reader costs.
const WARM = 1000;
const prompt = `[[events ${EVENTS} 64]]`;

export default {
  name: 'slow-reader',
  ids: ['B4'],
  title:
    `A reader that takes ${SLOW.toLocaleString('en')} events a second while ${EVENTS.toLocaleString('en')} ` +
    'are printed',
  says:
    'When the engine is done, the reader takes the rest as fast as it can. Each round has a server of its ' +
    'own, so that its peak is of this alone. Beside it, what the same turn costs with a reader that keeps up, ' +
    'and with none.',
  figures: {
    lost: { better: 'less', right: 0 },
    twice: { better: 'less', right: 0 },
    'grew MiB': { better: 'less', says: 'peak of the server until the reader has all, above what it had before' },
    'turn ms': { better: null, says: 'how long the engine took: whether the reader held it up' },
  },
  plots: ['lost', 'grew MiB'],
  bounds:
    'What bounds it: the turn takes nearly half of it without any reader, for V8 makes its heap larger under ' +
    'load. The rest is what is being sent and not yet collected: the slow one reads all frames again from the ' +
    'store in a moment, when it may. It is bounded, not growing with the events: fifteen times as many, tried ' +
    'once, took less than twice as much.',
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
        `${tell(of('Parley', 'lost'))} lost, ${tell(of('Parley', 'twice'))} twice, ` +
        `${tell(of('Parley', 'grew MiB'))} MiB more`,
      reached: of('Parley', 'lost') === 0 && of('Parley', 'twice') === 0 && of('Parley', 'grew MiB') < 64,
    },
  ],
};

// Stops reading for as long as what came would take it.
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
  // Two responses, the events, and the end of the turn: they are sent again to readers that connect later.
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
