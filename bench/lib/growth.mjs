// Measures how costs grow along one dimension: the same work at several sizes. The results are kept in bench/results,
// and the page shows one table for each dimension.
import { median } from './figures.mjs';
import { isGrowing, markdownTable, plainTable, UNITS } from './growth-table.mjs';
import { describeRun, judgeAims, keep } from './harness.mjs';
import { clearUp } from './systems.mjs';

// A dimension: { name, of, title, description, sizes, onceSizes, plots: [{ title, unit, rows: [NAME] }], open?,
// measure, aims? }. `of` is what there are many of. open(largest size) → a context with close(), shared by all sizes.
// measure({ size, record, isOnce, context }) calls record(NAME, { unit, values, stall }) for each row, `stall` being
// the longest time for which the event loop of the server stood still. aims(of, rows) → [{ aim, got, reached }], with
// of(NAME, FIGURE, SIZE) of growth-table.mjs.
export async function runGrowth(bench, { isOnce = false } = {}) {
  console.log(`${bench.name}: ${bench.title}`);
  const sizes = isOnce ? bench.onceSizes : bench.sizes;
  const result = { ...describeRun(bench.name), rows: [] };
  let context;
  try {
    context = await bench.open?.(Math.max(...sizes));
    for (const size of sizes) {
      const record = (name, cell) => addCell(result.rows, name, { size, ...cell });
      await bench.measure({ size, record, isOnce, context });
    }
  } finally {
    await context?.close();
    await clearUp();
  }
  for (const line of plainTable(result.rows, bench.of)) console.log(`  ${line}`);
  for (const { aim, got, verdict } of judgeAims(bench, result)) console.log(`  ${verdict}: ${aim}: ${got}`);
  if (!isOnce) keep(result);
}

function addCell(rows, name, { size, unit = 'ms', values, stall }) {
  if (!UNITS.includes(unit)) throw new Error(`${name}: there is no unit "${unit}"`);
  const middle = median(values);
  if (!Number.isFinite(middle)) throw new Error(`${name} with ${size}: the median is ${middle}`);
  let row = rows.find((each) => each.name === name);
  if (!row) rows.push((row = { name, unit, cells: [] }));
  row.cells.push({ size, median: middle, ...(stall === undefined ? {} : { stall }) });
}

// `draw` writes a picture and returns its title and file.
export function growthSection({ bench, result }, draw) {
  const { name, of, title, description, plots } = bench;
  const head = [`## ${name}`, '', `${title}. ${description}`, ''];
  if (result === null) return [...head, `Not measured: \`npm run bench -- ${name}\``, ''];
  const pictures = plots.map(({ title: words, unit, rows }) =>
    draw(
      name,
      words,
      rows
        .map((each) => result.rows.find((row) => row.name === each))
        .filter((row) => row !== undefined)
        .map((row) => ({ name: row.name, points: row.cells.map(({ size, median: y }) => ({ x: size, y })) })),
      { x: of, y: unit },
    ),
  );
  const growing = result.rows.filter(isGrowing).map((row) => row.name);
  return [
    ...head,
    ...pictures.flatMap((picture) => [`![${picture.title}](../images/bench/${picture.file})`, '']),
    ...markdownTable(result.rows, of),
    '',
    ...(growing.length > 0 ? [`Growing: ${growing.join('; ')}.`, ''] : []),
    `${result.measured}: \`npm run bench -- ${name}\``,
    '',
  ];
}
