// Measures the systems of one bench in turns, five rounds, so that a slow phase of the machine affects all of them.
// Stores every figure of every round in bench/results, with the machine and the commit, and prints the median with its
// spread.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, sorted, format, UNKNOWN } from './figures.mjs';
import { cellOf } from './growth-table.mjs';
import { clearUp, isPinned, unpinMyself } from './systems.mjs';

export const RESULTS = fileURLToPath(new URL('../results', import.meta.url));
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ROUNDS = 5;

// A bench: { name, ids, title, description, figures: { NAME: { better: 'more' | 'less' | null, right, description } },
// plots: [NAME], open }. open() → { systems: [{ who, round(number) → { FIGURE: value }, after() → { FIGURE: value } of
// all rounds }], close() }; aims(of, more) → [{ aim, got, reached }]: see valueOf; more() → { lines: [{ title, x, y,
// points }] } is drawn; `bounds` explains the limit of the figures, `pinned` the assignment of cores. Texts are not
// stored: the page uses the current ones of the bench.
export async function runBench(bench, { rounds = bench.rounds ?? ROUNDS, isKept = true } = {}) {
  console.log(`${bench.name}: ${bench.title}`);
  const result = {
    ...describeRun(bench.name),
    rounds,
    pinned: bench.pinned !== undefined && isPinned,
    rows: [],
    more: {},
  };
  let scene = null;
  try {
    scene = await bench.open();
    result.rows = scene.systems.map(({ who, note }) => ({ who, ...(note === undefined ? {} : { note }), figures: {} }));
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, system] of scene.systems.entries())
        addValues(bench, result.rows[index], await system.round(round));
    }
    for (const [index, system] of scene.systems.entries())
      addValues(bench, result.rows[index], (await system.after?.()) ?? {});
    result.more = scene.more?.() ?? {};
  } finally {
    await scene?.close();
    await clearUp();
    unpinMyself();
  }
  print(bench, result);
  if (isKept) keep(result);
}

// When and where a bench was measured.
export function describeRun(name) {
  return { name, measured: new Date().toISOString().slice(0, 10), commit: commit(), machine: machine() };
}

export function keep(result) {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, `${result.name}.json`), `${JSON.stringify(result, null, 1)}\n`);
}

// Null is an unknown value; for Parley, any other value must be a number.
function addValues({ figures }, row, values) {
  for (const [name, value] of Object.entries(values)) {
    if (!Object.hasOwn(figures, name)) throw new Error(`the figure "${name}" has no description`);
    if (row.who.startsWith('Parley') && value !== null && !Number.isFinite(value))
      throw new Error(`${row.who}: "${name}" is ${value}`);
    (row.figures[name] ??= []).push(Number.isFinite(value) ? value : null);
  }
}

// The value by which an aim is judged: the median or, if there is a right value, the round that is farthest from it,
// because a single loss is a loss. NaN if it was not measured.
export function valueOf({ figures }, { rows }, who, figure) {
  const values = rows.find((row) => row.who.startsWith(who))?.figures[figure]?.filter((value) => value !== null) ?? [];
  if (values.length === 0) return Number.NaN;
  const { right } = figures[figure];
  return right === undefined ? median(values) : values.toSorted((a, b) => Math.abs(b - right) - Math.abs(a - right))[0];
}

// Leaves out figures that were not measured.
export function judgeAims(bench, result) {
  const { rows, more } = result;
  const aims = bench.measure
    ? bench.aims?.((...which) => cellOf(rows, ...which), rows)
    : bench.aims?.((who, figure) => valueOf(bench, result, who, figure), more);
  return (aims ?? []).map(({ aim, got, reached }) => ({
    aim,
    got,
    verdict: got.includes(UNKNOWN) ? 'not measured' : reached ? 'reached' : '**not reached**',
  }));
}

function machine() {
  return {
    cores: cpus().length,
    processor: cpus()[0]?.model.trim() ?? '',
    memory_gib: Math.round(totalmem() / 1024 ** 3),
    node: process.version,
    system: process.platform,
    file_system: said('df', '--output=fstype', tmpdir())?.split('\n').at(-1) ?? null,
  };
}

// Changes of the results themselves do not count.
function commit() {
  const id = said('git', 'rev-parse', '--short', 'HEAD');
  return id !== null && said('git', 'status', '--porcelain', '--', '.', ':!bench/results', ':!docs') !== ''
    ? `${id} with changes`
    : id;
}

function said(command, ...args) {
  const { status, stdout } = spawnSync(command, args, { cwd: ROOT, encoding: 'utf8' });
  return status === 0 ? stdout.trim() : null;
}

function print(bench, result) {
  for (const { who, note, figures } of result.rows) {
    const parts = Object.entries(figures).map(([name, values]) => `${name} ${spread(values)}`);
    console.log(`  ${who.padEnd(22)} ${parts.join(', ') || note}`);
  }
  for (const { aim, got, verdict } of judgeAims(bench, result)) console.log(`  ${verdict}: ${aim}: ${got}`);
  console.log(
    `  (median of ${result.rounds} round${result.rounds === 1 ? '' : 's'}, smallest and largest in brackets)`,
  );
}

export function spread(values = []) {
  const known = sorted(values.filter((value) => value !== null));
  if (known.length === 0) return UNKNOWN;
  const [least, most] = [known[0], known.at(-1)];
  return least === most ? format(least) : `${format(median(known))} (${format(least)} to ${format(most)})`;
}

export function load(name) {
  return JSON.parse(readFileSync(join(RESULTS, `${name}.json`), 'utf8'));
}
