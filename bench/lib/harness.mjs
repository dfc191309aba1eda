// Measures the systems of one bench in turns, five rounds, so that a slow moment of the machine meets all of them; keeps every
// figure of every round in bench/results, and prints the middle one with its spread.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, sorted, tell } from './figures.mjs';

export const RESULTS = fileURLToPath(new URL('../results', import.meta.url));
const ROUNDS = 5;

// A bench: { name, ids, title, says, figures: { NAME: { better: 'more' | 'less' | null, says } }, plots: [NAME], open }.
// open() → { systems: [{ who, round(number) → { FIGURE: value } }], close() }; aims(of) → [{ aim, got, reached }],
// where of(WHO, FIGURE) is the median; more() → { lines: [{ title, x, y, points }] } is drawn; `bounds` says what bounds it.
export async function runBench(bench, { rounds = bench.rounds ?? ROUNDS } = {}) {
  console.log(`${bench.name}: ${bench.title}`);
  const scene = await bench.open();
  const rows = scene.systems.map(({ who, note }) => ({ who, ...(note === undefined ? {} : { note }), figures: {} }));
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const [index, system] of scene.systems.entries()) {
        for (const [name, value] of Object.entries(await system.round(round))) (rows[index].figures[name] ??= []).push(value);
      }
    }
  } finally {
    await scene.close();
  }
  const result = { name: bench.name, ids: bench.ids, title: bench.title, says: bench.says, rounds, measured: new Date().toISOString().slice(0, 10), machine: machine(), figures: bench.figures, plots: bench.plots, rows, more: scene.more?.() ?? {}, ...(bench.bounds === undefined ? {} : { bounds: bench.bounds }), aims: [] };
  result.aims = bench.aims?.((who, figure) => middle(result, who, figure), result.more) ?? [];
  print(result);
  save(result);
  return result;
}

export function middle(result, who, figure) {
  const values = result.rows.find((row) => row.who.startsWith(who))?.figures[figure]?.filter((value) => value !== null);
  return values === undefined || values.length === 0 ? null : median(values);
}

function machine() {
  return { cores: cpus().length, processor: cpus()[0]?.model.trim() ?? '', memory_gib: Math.round(totalmem() / 1024 ** 3), node: process.version, system: process.platform };
}

function print({ rows, figures, aims, rounds }) {
  for (const { who, figures: of } of rows) {
    const parts = Object.entries(of).map(([name, values]) => {
      const known = values.filter((value) => value !== null);
      if (known.length === 0) return `${name} –`;
      const [least, most] = [sorted(known)[0], sorted(known).at(-1)];
      return `${name} ${tell(median(known))}${least === most ? '' : ` (${tell(least)} to ${tell(most)})`}`;
    });
    console.log(`  ${who.padEnd(22)} ${parts.join(', ')}`);
  }
  for (const { aim, got, reached } of aims) console.log(`  ${reached ? 'reached' : 'NOT reached'}: ${aim}: ${got}`);
  const unknown = rows.flatMap((row) => Object.keys(row.figures)).find((name) => !Object.hasOwn(figures, name));
  if (unknown !== undefined) throw new Error(`nobody says what the figure "${unknown}" is`);
  console.log(`  (median of ${rounds} rounds, smallest and largest in brackets)`);
}

function save(result) {
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, `${result.name}.json`), `${JSON.stringify(result, null, 1)}\n`);
}

export function load(name) {
  return JSON.parse(readFileSync(join(RESULTS, `${name}.json`), 'utf8'));
}
