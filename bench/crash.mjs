// Counts the crashes that Parley survives while it asks, receives answers and resumes: simulated crashes at every call
// of its store, and real kills of a process. Reports every wrong outcome.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { format } from './lib/figures.mjs';
import { newFolder, removeFolder } from './lib/systems.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SCHEDULES = 200;
// From 100 cases on, each engine is killed before and after each kind of write; they take about two minutes.
const KILLED = 100;
const ROUNDS = 5;
const SEED = 20261116;
const COUNTED = ['runs', 'answers accepted', 'answers refused', 'answers repeated', 'cancels', 'crashes', 'restarts'];
const WRONG =
  'lower bound of the cases with a stuck run, a lost or double answer, or a turn started twice; the first wrong case ' +
  'of a round ends its schedules';

export default {
  name: 'crash',
  ids: ['B8'],
  title:
    `${(SCHEDULES * ROUNDS).toLocaleString('en')} random schedules of questions, answers and resumes with ` +
    `simulated crashes, and ${KILLED} conversations with a real SIGKILL`,
  description:
    `Simulated: each round runs ${SCHEDULES} schedules of ` +
    '[tests/torture/schedules.test.ts](../../tests/torture/schedules.test.ts) with its own seed. Runs are ' +
    'created, answered, answered late, twice and concurrently, canceled and left alone, and Parley crashes at any ' +
    `call of its store, including during start-up, within one process. Killed: one round of ${KILLED} cases of ` +
    '[tests/slow/crash.test.ts](../../tests/slow/crash.test.ts). In each, a process that contains Parley kills ' +
    'itself with SIGKILL before or after a write of each kind or at another time, some of them again during ' +
    'recovery, and is started again on the same data. A case is wrong if a run is stuck, an accepted answer is ' +
    'lost or used twice, a turn was started twice, or `verify` finds anything. Only for Parley: the answers of ' +
    'the others do not survive their process.',
  figures: {
    schedules: { better: null },
    ...Object.fromEntries(COUNTED.map((name) => [name, { better: null }])),
    'cases killed': { better: null },
    wrong: { better: 'less', right: 0, description: WRONG },
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
      got: `${format(of(who, 'wrong'))} wrong of ${format(of(who, what))} a round`,
      reached: of(who, 'wrong') === 0,
    })),
};

// Returns whether the test passed, and the content of the file that was passed to it.
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
    throw new Error(`${count('schedules')} of ${SCHEDULES} schedules were run`);
  return {
    schedules: count('schedules'),
    ...Object.fromEntries(COUNTED.map((name) => [name, count(name)])),
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
  if (passed && cases.length !== KILLED) throw new Error(`${cases.length} of ${KILLED} cases were run`);
  return { 'cases killed': cases.length, wrong: passed ? wrong.length : Math.max(1, wrong.length) };
}
