// Writes docs/internals/benchmarks.md and its pictures from bench/results and the texts of the benches. No figure on
// that page is written by hand.
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { growthSection } from './growth.mjs';
import { judgeAims, load, RESULTS, spread } from './harness.mjs';
import { bars, curves, line } from './plot.mjs';

const DOCS = fileURLToPath(new URL('../../docs', import.meta.url));
const PICTURES = join(DOCS, 'images', 'bench');

// Compared with other systems or with the bare limit; stored, and on the page in this order.
export const PROOFS = [
  'stream',
  'in-process',
  'first-event',
  'waiting',
  'reconnect',
  'slow-reader',
  'many-runs',
  'many-runs-light',
  'replies',
  'dirty',
  'replay',
  'crash',
  'soak',
  'profile',
];

// How costs grow, one bench for each dimension.
export const GROWTH = [
  'growth-runs',
  'growth-postgres',
  'growth-questions',
  'growth-events',
  'growth-turns',
  'growth-clients',
  'growth-hosts',
];
// Takes long and fills the disk, so it runs only by its own name.
export const RETENTION = 'growth-retention';

export async function loadBench(name) {
  const file = name.startsWith('growth-') ? `growth/${name.slice('growth-'.length)}` : name;
  return (await import(`../${file}.mjs`)).default;
}

export async function writePage() {
  const proofs = await readResults(PROOFS);
  const dimensions = await readResults([...GROWTH, RETENTION]);
  const all = [...proofs, ...dimensions];
  mkdirSync(PICTURES, { recursive: true });
  for (const old of readdirSync(PICTURES)) rmSync(join(PICTURES, old));
  const text = [
    '# Benchmarks',
    '',
    '<!-- Written by `npm run bench -- page` from bench/results. -->',
    '',
    'Parley compared with the systems that one would use instead, on the same scripted engine ' +
      '([bench/lib/engine.mjs](../../bench/lib/engine.mjs)), in turns within one run: five rounds, the median, with ' +
      'the smallest and largest in brackets. Unless a row notes otherwise, Parley stores everything (SQLite, ' +
      '`synchronous=FULL`). Where there is a bare limit, it is in the table. Losses are listed, including ours. For ' +
      'anything that must never happen, the worst round counts.',
    '',
    ...describePlaces(all),
    '',
    'The machine is shared and noisy: compare within a table, not with other machines.',
    '',
    '```sh',
    'npm run bench -- all        # all benches and this page: two hours. Installs the other systems in .cache/peers',
    'npm run bench -- stream     # one bench; its name is its heading below',
    'npm run bench -- growth     # how costs grow, in all dimensions',
    'npm run bench -- page       # only this page, from bench/results',
    '```',
    '',
    'Not measured, because they cannot be installed from npm here: agentapi, OpenHands, Omnigent, Vibe Kanban, ' +
      'Happy, Skill-Runner. Engines that are servers themselves (`opencode serve`, `codex app-server`) run their ' +
      'own agent and cannot use the scripted one, so they are not in these tables.',
    '',
    '## Aims',
    '',
    '| aim | measured | |',
    '|---|---|---|',
    ...all.flatMap(({ bench, result }) =>
      judgeAims(bench, result ?? NONE).map(
        ({ aim, got, verdict }) => `| [${aim}](#${bench.name}) | ${got} | ${verdict} |`,
      ),
    ),
    '',
    ...proofs.flatMap(section),
    '## growth',
    '',
    'How the costs of Parley alone grow: each table has the median at several sizes, with the longest time for which ' +
      'the event loop of the server stood still in brackets, and the exponent of the growth: 0 is constant, 1 is ' +
      'linear, 2 is quadratic (the slope of log cost over log size). Times below 0.05 ms are noise and count as ' +
      'that. An exponent over 0.2 is bold if the work takes more than 5 ms at the largest size. ' +
      `\`npm run bench -- growth\` measures all but \`${RETENTION}\`, which takes long and fills the disk.`,
    '',
    ...dimensions.flatMap((dimension) => growthSection(dimension, drawCurves)),
  ];
  writeFileSync(join(DOCS, 'internals', 'benchmarks.md'), `${text.join('\n').trimEnd()}\n`);
  console.log(
    `docs/internals/benchmarks.md: ${all.filter(({ result }) => result !== null).length} of ${all.length} ` +
      `benches, ${readdirSync(PICTURES).length} pictures`,
  );
}

function readResults(names) {
  return Promise.all(
    names.map(async (name) => ({
      bench: await loadBench(name),
      result: existsSync(join(RESULTS, `${name}.json`)) ? load(name) : null,
    })),
  );
}

const NONE = { rows: [], more: {} };

// Names the machine and commit of the measurements, which may differ from bench to bench.
function describePlaces(proofs) {
  const places = new Map();
  for (const { bench, result } of proofs) {
    if (result === null) continue;
    const {
      machine: { cores, processor, memory_gib: memory, node, file_system: files },
      commit,
    } = result;
    const place =
      `${cores} cores (${processor}), ${memory} GiB, Node ${node}, data on ` +
      `${files ?? 'an unknown file system'}, commit ${commit ?? 'unknown'}`;
    places.set(place, [...(places.get(place) ?? []), bench.name]);
  }
  if (places.size < 2) return [...places.keys()].map((place) => `Measured on ${place}.`);
  return [
    'The machines or commits differ:',
    '',
    ...[...places].map(([place, names]) => `- ${names.join(', ')}: ${place}`),
  ];
}

function section({ bench, result }) {
  const { name, ids, title, description, figures, plots, bounds, pinned } = bench;
  const head = [`## ${name}`, '', `${title}${ids.length > 0 ? ` (${ids.join(', ')})` : ''}. ${description}`, ''];
  if (result === null) return [...head, `Not measured: \`npm run bench -- ${name}\``, ''];
  const { rounds, measured, rows } = result;
  const names = Object.keys(figures).filter((figure) => rows.some((row) => row.figures[figure] !== undefined));
  const pictures = [...plots.map((figure) => drawBars(bench, rows, figure)), ...drawLines(result)];
  const remarks = names
    .filter((figure) => figures[figure].description !== undefined)
    .map((figure) => `${figure}: ${figures[figure].description}`);
  return [
    ...head,
    ...(pinned === undefined || result.pinned === undefined
      ? []
      : [result.pinned ? pinned : 'Nothing was pinned to a core.', '']),
    ...pictures.flatMap((picture) => [`![${picture.title}](../images/bench/${picture.file})`, '']),
    `| | ${names.join(' | ')} |`,
    `|---|${names.map(() => '---:|').join('')}`,
    ...rows.map(
      (row) =>
        `| ${row.who}${row.note === undefined ? '' : ` (${row.note})`} | ` +
        `${names.map((figure) => spread(row.figures[figure])).join(' | ')} |`,
    ),
    '',
    ...(remarks.length > 0 ? [`${remarks.join('; ')}.`, ''] : []),
    ...(bounds === undefined ? [] : [bounds, '']),
    `${rounds} round${rounds === 1 ? '' : 's'}, ${measured}: \`npm run bench -- ${name}\``,
    '',
  ];
}

function drawBars({ name, figures }, rows, figure) {
  const better = { more: ' (more is better)', less: ' (less is better)' }[figures[figure].better] ?? '';
  const title = `${figure}${better}`;
  return draw(
    `${name}-${figure}`,
    title,
    bars(
      title,
      rows.map(({ who, figures: of }) => ({ who, values: of[figure] ?? [] })),
    ),
  );
}

function drawLines({ name, more }) {
  return (more.lines ?? []).map(({ title, x, y, points }) =>
    draw(`${name}-${title}`, title, line(title, points, { x, y })),
  );
}

function drawCurves(name, title, series, axes) {
  return draw(`${name}-${title}`, title, curves(title, series, axes));
}

function draw(name, title, svg) {
  const file = `${name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/-$/, '')}.svg`;
  writeFileSync(join(PICTURES, file), svg);
  return { title, file };
}
