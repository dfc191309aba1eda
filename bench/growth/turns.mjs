// How costs grow with the number of turns of one run: what a turn costs, and what a check costs for each turn.
import { cpuOf, grown } from '../lib/cost.mjs';
import { format, median, now } from '../lib/figures.mjs';
import { startMeasured } from '../lib/restarts.mjs';
import { timeEach } from '../lib/stalls.mjs';
import { newFolder, removeFolder } from '../lib/systems.mjs';

const ASK = '[[ask Go on?|yes]]';
// The turns before each size that are measured.
const MEASURED = 20;
const CHECKS = 3;
const TURN = 'CPU of the server for a turn';
const VERIFY = 'verify, for each turn';

export default {
  name: 'growth-turns',
  of: 'turns',
  title: 'Turns of one run',
  description:
    'A rehearsal asks a question in each turn, and the answer starts the next one in a new process. The cost of a ' +
    `turn is that of the last ${MEASURED} turns up to each size, from the reply until the next question is stored. ` +
    'Of the time for "verify" (in a process of its own), that for a run with one turn is subtracted.',
  sizes: [10, 100, 1000],
  onceSizes: [5, 15],
  plots: [
    {
      title: 'One turn of a run with many turns',
      unit: 'ms',
      rows: ['reply', 'from a reply to the next question', TURN],
    },
    { title: 'verify of one run, per turn', unit: 'ms', rows: [VERIFY] },
  ],
  open: async () => {
    const folder = newFolder();
    const server = await startMeasured(folder);
    const [short, long] = [await startRun(server), await startRun(server)];
    // Without the time for which the check process starts.
    const bare = median(await timeEach(CHECKS, () => check(server, short)));
    const close = async () => {
      await server.stop();
      removeFolder(folder);
    };
    return { server, run: { id: long, turns: 1 }, bare, close };
  },
  measure: async ({ size, record, context: { server, run, bare } }) => {
    while (run.turns < Math.max(1, size - MEASURED)) await takeTurn(server, run);
    await measureTurns(server, run, { size, record });
    await server.stall();
    const checks = await timeEach(CHECKS, () => check(server, run.id));
    const stall = await server.stall();
    record(VERIFY, { values: checks.map((ms) => Math.max(0, ms - bare) / size), stall });
  },
  aims: (of) => [
    {
      aim: 'a turn and its check cost as much in a run with 1,000 turns (exponents at most 0.2)',
      got: `exponents ${format(of(TURN, 'exponent'))} and ${format(of(VERIFY, 'exponent'))}`,
      reached: of(TURN, 'exponent') <= 0.2 && of(VERIFY, 'exponent') <= 0.2,
    },
  ],
};

async function startRun(server) {
  const { run_id: id } = await server.create(ASK, {
    engine: 'rehearsal',
    execution_mode: 'interactive',
    runtime_options: { max_attempt: 100_000 },
  });
  await server.waitUntilIdle(id, 'waiting_user');
  return id;
}

async function check({ client }, id) {
  const { ok } = await client.verify(id);
  if (!ok) throw new Error(`run ${id} does not verify`);
}

async function measureTurns(server, run, { size, record }) {
  await server.stall();
  const [cpu, from, replies, turns] = [cpuOf(server.pid), run.turns, [], []];
  while (run.turns < size) {
    const { reply, turn } = await takeTurn(server, run);
    replies.push(reply);
    turns.push(turn);
  }
  const stall = await server.stall();
  record('reply', { values: replies });
  record('from a reply to the next question', { values: turns, stall });
  const used = grown(cpu, cpuOf(server.pid), run.turns - from);
  if (used !== null) record(TURN, { values: [used / 1000] });
}

// Resolves when the next question is stored.
async function takeTurn({ client, waitUntilIdle }, run) {
  const { interaction } = await client.get(run.id);
  const began = now();
  await client.reply(run.id, { interaction_id: interaction.interaction_id, response: ASK });
  const reply = now() - began;
  await waitUntilIdle(run.id, 'waiting_user');
  run.turns += 1;
  return { reply, turn: now() - began };
}
