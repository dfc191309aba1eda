// Sends a hundred concurrent answers to one question, one answer to an answered question, and one to a question that
// was never asked.
import { format } from './lib/figures.mjs';
import { readFrames } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { newFolder, post, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const REPLIERS = 100;

export default {
  name: 'replies',
  ids: ['B10'],
  title: `${REPLIERS} concurrent answers to one question, then a late one and one to an unknown question`,
  description:
    '"Accepted" means that the sender received success. To Parley each of the hundred sends a different text; to ' +
    'sandbox-agent half of them send allow and half reject. For sandbox-agent only the HTTP responses count, ' +
    'because the effect on its agent is not visible.',
  figures: {
    accepted: { better: null, right: 1, description: 'of the hundred; 1 is correct' },
    'late accepted': { better: 'less', right: 0 },
    'unknown accepted': { better: 'less', right: 0 },
    ms: { better: 'less', description: 'until all hundred had a response' },
  },
  plots: ['accepted'],
  async open() {
    const folders = [newFolder(), newFolder()];
    const parley = await startParley(folders[0]);
    const other = peer('sandbox-agent') ? await startSandboxAgent(folders[1]) : null;
    return {
      systems: [
        { who: 'Parley', round: () => answerParley(parley) },
        other
          ? { who: peer('sandbox-agent').name, round: (round) => answerSandboxAgent(other, `q${round}`) }
          : absent('sandbox-agent'),
      ],
      close: async () => {
        await parley.stop();
        await other?.stop();
        folders.forEach(removeFolder);
      },
    };
  },
  aims: (of) => [
    {
      aim: 'exactly one is accepted, none that is late, none to an unknown question',
      got:
        `${format(of('Parley', 'accepted'))}, ${format(of('Parley', 'late accepted'))}, ` +
        `${format(of('Parley', 'unknown accepted'))}`,
      reached:
        of('Parley', 'accepted') === 1 && of('Parley', 'late accepted') === 0 && of('Parley', 'unknown accepted') === 0,
    },
  ],
};

const successes = (answers) => answers.filter(({ status }) => status >= 200 && status < 300).length;

async function judge(send, question) {
  const begin = Date.now();
  const accepted = successes(
    await Promise.all(Array.from({ length: REPLIERS }, (_, number) => send(question, number))),
  );
  const ms = Date.now() - begin;
  const late = successes([await send(question, REPLIERS)]);
  const unknown = successes([await send('int_01M7HEENCB3Q72PDFDW48J2F4K', REPLIERS + 1)]);
  return { accepted, 'late accepted': late, 'unknown accepted': unknown, ms };
}

async function answerParley({ create, waitUntilIdle, client, url, headers }) {
  const { run_id: runId } = await create('[[ask]]', { execution_mode: 'interactive' });
  await waitUntilIdle(runId, 'waiting_user');
  const { interaction_id: id } = await client.interaction(runId);
  return judge(
    (question, number) =>
      post(
        `${url}/v1/runs/${runId}/interaction/reply`,
        { interaction_id: question, response: `answer ${number}` },
        'POST',
        headers,
      ),
    id,
  );
}

async function answerSandboxAgent(server, name) {
  const session = await server.open(name);
  const asked = readFrames(server.stream(name), {
    onFrame: (_id, frame) => frame.includes('session/request_permission'),
  });
  const turn = server.prompt(name, session, '[[ask]]');
  await asked;
  const result = await judge(
    (question, number) =>
      server.answer(name, question, { outcome: { outcome: 'selected', optionId: number % 2 ? 'allow' : 'reject' } }),
    'ask',
  );
  await turn;
  return result;
}
