// Measures what waiting runs cost, and how many of them survive a kill of the server.
import { childrenOf, grown, memoryOf, shareOf } from './lib/cost.mjs';
import { now, sum, format } from './lib/figures.mjs';
import { fillWaiting } from './lib/fill-waiting-runs.mjs';
import { readFrames } from './lib/frames.mjs';
import { absent, peer } from './lib/peers.mjs';
import { earlierVersion, newFolder, post, removeFolder, startParley, startSandboxAgent } from './lib/systems.mjs';

const WAITING = 10_000;
const FEWER = 1000;
const OTHERS = 50;
const ANSWERED = 20;

export default {
  name: 'waiting',
  ids: ['B6', 'B7'],
  title: `${WAITING.toLocaleString('en')} runs that wait for a person, and a SIGKILL`,
  description:
    `Parley has ${WAITING.toLocaleString('en')} and ${FEWER.toLocaleString('en')} waiting runs, written through ` +
    `its store because so many turns would take an hour; sandbox-agent has ${OTHERS} real ones (each is a live ` +
    'process). Their cost is measured first, after the list of them has been read once. Then the server is killed ' +
    'with SIGKILL and started again by the same command; the time is from the kill until an answer to one of the ' +
    `questions is accepted. After that, for Parley, ${ANSWERED} questions from all parts of the list are answered ` +
    'twice with different texts, and the questions in the inbox are counted: with the answered ones they must be ' +
    'as many as were written, minus those answered in earlier rounds. For sandbox-agent all questions are ' +
    'answered.',
  figures: {
    'KiB/waiting run': { better: 'less', description: 'memory of server and engines, minus a server without runs' },
    'processes/waiting run': { better: 'less', right: 0 },
    'ms to ready': { better: 'less', description: 'from SIGKILL until the server is ready again' },
    'ms to answered': { better: 'less', description: 'from SIGKILL until an answer was accepted' },
    'recovered %': { better: 'more', right: 100 },
    'applied twice': { better: 'less', right: 0, description: 'questions for which a second answer was accepted' },
  },
  plots: ['KiB/waiting run', 'recovered %'],
  async open() {
    const [many, fewer, empty] = [newFolder(), newFolder(), newFolder()];
    await fillWaiting(many, WAITING);
    await fillWaiting(fewer, FEWER);
    const before = earlierVersion();
    const earlier = before && { ...before, many: newFolder(), empty: newFolder() };
    if (earlier) await fillWaiting(earlier.many, WAITING, earlier.script('fill-waiting.mjs'));
    return {
      systems: [
        {
          who: 'Parley',
          note: `${WAITING.toLocaleString('en')} runs`,
          round: (round) => killParley(many, empty, WAITING - round * ANSWERED),
        },
        {
          who: 'Parley, fewer',
          note: `${FEWER.toLocaleString('en')} runs`,
          round: (round) => killParley(fewer, empty, FEWER - round * ANSWERED),
        },
        ...(earlier
          ? [
              {
                who: earlier.who,
                note: `${WAITING.toLocaleString('en')} runs`,
                round: (round) => killParley(earlier.many, earlier.empty, WAITING - round * ANSWERED, earlier),
              },
            ]
          : []),
        peer('sandbox-agent')
          ? { who: peer('sandbox-agent').name, note: `${OTHERS} runs`, round: killSandboxAgent }
          : absent('sandbox-agent'),
      ],
      close: async () => [many, fewer, empty, ...(earlier ? [earlier.many, earlier.empty] : [])].forEach(removeFolder),
    };
  },
  aims: (of) => [
    {
      aim: '10,000 waiting runs answerable within a second of a SIGKILL',
      got: `${format(of('Parley', 'ms to answered'))} ms, ${format(of('Parley', 'recovered %'))} % recovered`,
      reached: of('Parley', 'ms to answered') < 1000 && of('Parley', 'recovered %') === 100,
    },
    {
      aim: 'less than 50 KiB and no process for each',
      got: `${format(of('Parley', 'KiB/waiting run'))} KiB, ${format(of('Parley', 'processes/waiting run'))} processes`,
      reached: of('Parley', 'KiB/waiting run') < 50 && of('Parley', 'processes/waiting run') === 0,
    },
  ],
};

// `version` has the program of an earlier version.
async function killParley(folder, empty, waiting, { program } = {}) {
  const options = program ? { program } : {};
  const none = await startParley(empty, options);
  const base = memoryOf(none.pid);
  await none.stop();
  const before = await startParley(folder, options);
  const all = await readInbox(before.client);
  if (all.length < waiting) throw new Error(`the inbox lists ${all.length} of ${waiting} questions`);
  const costs = {
    'KiB/waiting run': grown(base, memoryOf(before.pid), waiting / 1024),
    'processes/waiting run': grown(0, childrenOf(before.pid)?.length ?? null, waiting),
  };
  // From all parts of the list, different ones in each round.
  const picked = Array.from({ length: ANSWERED }, (_, number) => all[Math.floor((number * all.length) / ANSWERED)]);
  const begin = now();
  await before.kill();
  const server = await startParley(folder, options);
  const ready = now() - begin;
  const send = ({ run_id: runId, interaction_id: id }, response) =>
    post(`${server.url}/v1/runs/${runId}/interaction/reply`, { interaction_id: id, response }, 'POST', server.headers);
  let answered = 0;
  let twice = 0;
  for (const question of picked) {
    const { status, text } = await send(question, 'go on');
    answered ||= now() - begin;
    if (status >= 300) throw new Error(`an answer was not accepted: ${text}`);
    if ((await send(question, 'no, stop')).status < 300) twice += 1;
  }
  // An answered run may ask again, so new questions do not count.
  const kept = new Set([...picked, ...(await readInbox(server.client))].map(({ interaction_id: id }) => id));
  const recovered = all.filter(({ interaction_id: id }) => kept.has(id));
  await server.kill();
  return {
    ...costs,
    'ms to ready': ready,
    'ms to answered': answered,
    'recovered %': (100 * recovered.length) / all.length,
    'applied twice': twice,
  };
}

async function readInbox(client) {
  const all = [];
  for (let cursor; ;) {
    const page = await client.inbox({ limit: 500, ...(cursor ? { cursor } : {}) });
    all.push(...page.interactions);
    cursor = page.next_cursor;
    if (!cursor) return all;
  }
}

async function killSandboxAgent() {
  const folder = newFolder();
  const server = await startSandboxAgent(folder);
  const base = memoryOf(server.pid);
  const turns = [];
  for (let number = 0; number < OTHERS; number += 1) {
    const session = await server.open(`w${number}`);
    const asked = readFrames(server.stream(`w${number}`), {
      onFrame: (_id, frame) => frame.includes('session/request_permission'),
    });
    turns.push(server.prompt(`w${number}`, session, '[[ask]]').catch(() => null));
    await asked;
  }
  const processes = childrenOf(server.pid);
  const memory = processes && memoryOf(server.pid) + sum(processes.map((pid) => shareOf(pid) ?? 0));
  const begin = now();
  await server.kill();
  const next = await startSandboxAgent(folder);
  const ready = now() - begin;
  let recovered = 0;
  for (let number = 0; number < OTHERS; number += 1) {
    const { status } = await next.answer(`w${number}`, 'ask', { outcome: { outcome: 'selected', optionId: 'allow' } });
    if (status < 300) recovered += 1;
  }
  await next.stop();
  await Promise.all(turns);
  removeFolder(folder);
  return {
    'KiB/waiting run': grown(base, memory, OTHERS / 1024),
    'processes/waiting run': grown(0, processes?.length ?? null, OTHERS),
    'ms to ready': ready,
    'recovered %': (100 * recovered) / OTHERS,
  };
}
