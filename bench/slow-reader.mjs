// A reader that takes a thousand events a second while a hundred thousand are printed, and then as many as it can.
import { tell } from './lib/figures.mjs';
import { memoryOf, peakOf } from './lib/cost.mjs';
import { countFrames, readFrames, readUntil } from './lib/frames.mjs';
import { peer } from './lib/peers.mjs';
import { newFolder, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const EVENTS = 100_000;
const SLOW = 1000;
const prompt = `[[events ${EVENTS} 64]]`;

export default {
  name: 'slow-reader', ids: ['B4'], title: `A reader that takes ${SLOW.toLocaleString('en')} events a second while ${EVENTS.toLocaleString('en')} are printed`,
  says: 'When the engine is done, the reader takes the rest as fast as it can. Each round has a server of its own, so that its peak is of this alone.',
  figures: { lost: { better: 'less' }, 'grew MiB': { better: 'less', says: 'peak of the server above what it had before' }, 'turn ms': { better: null, says: 'how long the engine took: whether the reader held it up' } },
  plots: ['lost', 'grew MiB'],
  rounds: 5,
  async open() {
    return {
      systems: [
        { who: 'Parley', round: () => withServer(startParley, slowParley) },
        ...(peer('sandbox-agent') ? [{ who: peer('sandbox-agent').name, round: () => withServer(startSandboxAgent, slowSandboxAgent) }] : []),
      ],
      close: async () => {},
    };
  },
  aims: (of) => [
    { aim: 'none lost, and less than 64 MiB more memory', got: `${tell(of('Parley', 'lost'))} lost, ${tell(of('Parley', 'grew MiB'))} MiB more`, reached: of('Parley', 'lost') === 0 && of('Parley', 'grew MiB') < 64 },
  ],
};

async function withServer(start, work) {
  const folder = newFolder();
  const server = await start(folder);
  try {
    return await work(server);
  } finally {
    await server.stop();
    removeFolder(folder);
  }
}

// Stops reading for as long as what came would take it.
function slowly() {
  const begun = Date.now();
  let fast = false;
  return {
    hurry: () => (fast = true),
    pace: (response, { frames }) => {
      const ahead = (frames / SLOW) * 1000 - (Date.now() - begun);
      if (fast || ahead <= 0) return;
      response.pause();
      const wait = setInterval(() => {
        if (!fast && Date.now() - begun < (frames / SLOW) * 1000) return;
        clearInterval(wait);
        response.resume();
      }, 20);
    },
  };
}

async function slowParley({ create, url, headers, pid, client }) {
  // What a first turn loads is not what a slow reader costs.
  await readFrames(`${url}/v1/runs/${(await create('[[events 1000 64]]')).run_id}/rasp`, { headers });
  const before = memoryOf(pid);
  const reader = slowly();
  const messages = countFrames('"agent.message.final"');
  const begin = Date.now();
  const { run_id: runId } = await create(prompt);
  const reading = readFrames(`${url}/v1/runs/${runId}/rasp`, { headers, onFrame: messages.frame, pace: reader.pace });
  for (;;) {
    const { status } = await client.get(runId);
    if (status === 'succeeded') break;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const turn = Date.now() - begin;
  const grew = peakOf(pid) - before;
  reader.hurry();
  const { frames, last } = await reading;
  return { lost: EVENTS + 1 - messages.count + (last - frames), 'grew MiB': grew, 'turn ms': turn };
}

async function slowSandboxAgent(server) {
  const session = await server.open('slow');
  await server.prompt('slow', session, '[[events 1000 64]]');
  const before = memoryOf(server.pid);
  const reader = slowly();
  const messages = countFrames('agent_message_chunk');
  const reading = readUntil(server.stream('slow'), 'none of these', { onFrame: messages.frame, pace: reader.pace });
  const begin = Date.now();
  await server.prompt('slow', session, prompt);
  const turn = Date.now() - begin;
  const grew = peakOf(server.pid) - before;
  reader.hurry();
  await reading.over();
  // Of the thousand before it may have been sent some again.
  return { lost: Math.max(0, EVENTS - messages.count), 'grew MiB': grew, 'turn ms': turn };
}
