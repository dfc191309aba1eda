// Counts the crashes that Parley survives while it asks, is answered and resumes: simulated crashes at every call of
// its store, and real kills of a process. Reports every wrong outcome.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { tell } from './lib/figures.mjs';
import { newFolder, removeFolder } from './lib/systems.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SCHEDULES = 200;
// From a hundred on, each engine is killed before and after each kind of write; they take about two minutes.
const KILLED = 100;
const ROUNDS = 5;
const SEED = 20261116;
const DEEDS = ['runs', 'answers taken', 'answers refused', 'answers repeated', 'cancels', 'crashes', 'restarts'];
const WRONG =
  'at least so many with a stuck run, a lost or double answer, or a turn started twice; the first of a round ends ' +
  'its schedules';

export default {
  name: 'crash',
  ids: ['B8'],
  title:
    `${(SCHEDULES * ROUNDS).toLocaleString('en')} random schedules of asking, answering and resuming with ` +
    `simulated crashes, and ${KILLED} conversations with a real SIGKILL`,
  says:
    `Simulated: each round ${SCHEDULES} schedules of ` +
    '[tests/torture/schedules.test.ts](../../tests/torture/schedules.test.ts) with a seed of its own: runs are ' +
    'created, answered, answered late, twice and at once, canceled and left alone, and Parley dies at any ' +
    `call of its store, also while it starts, within one process that goes on. Killed: one round of ${KILLED} ` +
    'cases of [tests/slow/crash.test.ts](../../tests/slow/crash.test.ts), in each of which a process with Parley ' +
    'in it kills itself with SIGKILL before or after a write of each kind or at any other moment, some of ' +
    'them again while they recover, and is opened again on what it left. One is wrong if a run is stuck, an ' +
    `answer that was taken is gone or used twice, a turn was started twice, or \`verify\` finds anything. Of ` +
    'Parley alone: the others have no answers that outlive them.',
  figures: {
    schedules: { better: null },
    ...Object.fromEntries(DEEDS.map((deed) => [deed, { better: null }])),
    'cases killed': { better: null },
    wrong: { better: 'less', right: 0, says: WRONG },
  },
  plots: [],
  rounds: ROUNDS,
  async open() {
    return {
      systems: [
        { who: 'Parley, simulated', round: torture },
        { who: 'Parley, killed', note: 'one round', round: (round) => (round === 0 ? kill() : {}) },
      ],
      close: async () => {},
    };
  },
  aims: (of) =>
    [
      ['Parley, simulated', 'schedules'],
      ['Parley, killed', 'cases killed'],
    ].map(([who, what]) => ({
      aim: `${who}: no stuck run, no double resume, no lost answer`,
      got: `${tell(of(who, 'wrong'))} wrong of ${tell(of(who, what))} a round`,
      reached: of(who, 'wrong') === 0,
    })),
};

// Its exit code, and what it has left in the file that was named to it.
function play(test, toOptions) {
  const folder = newFolder();
  const file = join(folder, 'output');
  const { env, args = [] } = toOptions(file);
  const { status } = spawnSync('npx', ['vitest', 'run', '--project', 'slow', test, ...args], {
    cwd: ROOT,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, ...env },
  });
  const output = existsSync(file) ? readFileSync(file, 'utf8') : '';
  removeFolder(folder);
  return { passed: status === 0, output };
}

function torture(round) {
  const { passed, output } = play('tests/torture/schedules.test.ts', (file) => ({
    env: { PARLEY_SEED: String(SEED + round), PARLEY_SCHEDULES: String(SCHEDULES), PARLEY_FIGURES: file },
  }));
  console.log(`  ${output.trim()}`);
  const count = (what) => Number(new RegExp(`(\\d+) ${what}\\b`).exec(output)?.[1] ?? 0);
  if (passed && count('schedules') !== SCHEDULES)
    throw new Error(`${count('schedules')} of ${SCHEDULES} schedules were played`);
  return {
    schedules: count('schedules'),
    ...Object.fromEntries(DEEDS.map((deed) => [deed, count(deed)])),
    wrong: passed ? 0 : 1,
  };
}

function kill() {
  const { passed, output } = play('tests/slow/crash.test.ts', (file) => ({
    env: { PARLEY_SEED: String(SEED), PARLEY_CRASH_RUNS: String(KILLED) },
    args: ['--reporter=json', `--outputFile=${file}`],
  }));
  const { testResults = [] } = output === '' ? {} : JSON.parse(output);
  const cases = testResults.flatMap(({ assertionResults }) => assertionResults);
  const wrong = cases.filter(({ status }) => status !== 'passed');
  for (const { title, failureMessages } of wrong) console.log(`  wrong: ${title}: ${failureMessages.join('\n')}`);
  if (passed && cases.length !== KILLED) throw new Error(`${cases.length} of ${KILLED} cases were played`);
  return { 'cases killed': cases.length, wrong: passed ? wrong.length : Math.max(1, wrong.length) };
}
