// docs/benchmarks.md and its pictures, from what is kept in bench/results: nothing on that page is written by hand but its words.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { median, sorted, tell } from './figures.mjs';
import { load, RESULTS } from './harness.mjs';
import { bars, line } from './plot.mjs';

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
const PICTURES = join(DOCS, 'images', 'bench');

const ORDER = ['stream', 'in-process', 'first-event', 'waiting', 'reconnect', 'slow-reader', 'many-runs', 'replies', 'dirty', 'replay', 'crash', 'soak', 'profile'];

export function writePage() {
  const results = ORDER.filter((name) => existsSync(join(RESULTS, `${name}.json`))).map(load);
  mkdirSync(PICTURES, { recursive: true });
  for (const old of readdirSync(PICTURES)) rmSync(join(PICTURES, old));
  const [{ machine }] = results;
  const text = [
    '# Measured',
    '',
    '<!-- Written by `npm run bench -- page` from bench/results. -->',
    '',
    `Parley beside the systems that one would take instead, on the same scripted engine ([bench/lib/engine.mjs](../bench/lib/engine.mjs)), in turns within one run: five rounds, the median, and the smallest and largest in brackets. Parley always stores everything (SQLite, \`synchronous=FULL\`); where there is one, the bare limit stands beside it. Losses are shown, ours too.`,
    '',
    `Measured on ${machine.cores} cores (${machine.processor}), ${machine.memory_gib} GiB, Node ${machine.node}. The machine is shared and noisy: compare within a table, not with other machines. Where a figure is about throughput to one reader, the server has one core to itself, engine and reader share the other.`,
    '',
    '```sh',
    'npm run bench -- all        # all of it, and this page; about half an hour. Peers are installed into .cache/peers',
    'npm run bench -- stream     # one of them; its name is its heading below',
    'npm run bench -- page       # this page again, from bench/results',
    '```',
    '',
    'Not measured, as they cannot be installed from npm here: agentapi, OpenHands, Omnigent, Vibe Kanban, Happy.',
    '',
    '## Aims',
    '',
    '| aim | measured | |',
    '|---|---|---|',
    ...results.flatMap(({ name, aims }) => aims.map(({ aim, got, reached }) => `| [${aim}](#${name}) | ${got} | ${reached ? 'reached' : '**not reached**'} |`)),
    '',
    ...results.flatMap(section),
  ];
  writeFileSync(join(DOCS, 'benchmarks.md'), `${text.join('\n').trimEnd()}\n`);
  console.log(`docs/benchmarks.md: ${results.length} benches, ${readdirSync(PICTURES).length} pictures`);
}

function section(result) {
  const { name, ids, title, says, rounds, measured, figures, rows, plots, bounds } = result;
  const names = Object.keys(figures).filter((figure) => rows.some((row) => row.figures[figure] !== undefined));
  const pictures = [...plots.map((figure) => drawBars(result, figure)), ...drawLines(result)];
  const remarks = names.filter((figure) => figures[figure].says !== undefined).map((figure) => `${figure}: ${figures[figure].says}`);
  return [
    `## ${name}`,
    '',
    `${title}${ids.length > 0 ? ` (${ids.join(', ')})` : ''}. ${says}`,
    '',
    ...pictures.flatMap((picture) => [`![${picture.title}](images/bench/${picture.file})`, '']),
    `| | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---:|').join('')}`,
    ...rows.map((row) => `| ${row.who}${row.note === undefined ? '' : ` (${row.note})`} | ${names.map((figure) => cell(row.figures[figure])).join(' | ')} |`),
    '',
    ...(remarks.length > 0 ? [`${remarks.join('; ')}.`, ''] : []),
    ...(bounds === undefined ? [] : [bounds, '']),
    `${rounds} round${rounds === 1 ? '' : 's'}, ${measured}: \`npm run bench -- ${name}\``,
    '',
  ];
}

function cell(values) {
  const known = values?.filter((value) => value !== null) ?? [];
  if (known.length === 0) return '–';
  const [least, most] = [sorted(known)[0], sorted(known).at(-1)];
  return least === most ? tell(least) : `${tell(median(known))} (${tell(least)} to ${tell(most)})`;
}

function drawBars({ name, figures, rows }, figure) {
  const better = { more: ' (more is better)', less: ' (less is better)' }[figures[figure].better] ?? '';
  const title = `${figure}${better}`;
  return draw(`${name}-${figure}`, title, bars(title, rows.map(({ who, figures: of }) => ({ who, values: of[figure] ?? [] }))));
}

function drawLines({ name, more }) {
  return (more.lines ?? []).map(({ title, x, y, points }) => draw(`${name}-${title}`, title, line(title, points, { x, y })));
}

function draw(name, title, svg) {
  const file = `${name.toLowerCase().replace(/[^a-z0-9]+/g, '-').replace(/-$/, '')}.svg`;
  writeFileSync(join(PICTURES, file), svg);
  return { title, file };
}
