// The rows of a growth bench as tables: the median for each size, the longest stall of the event loop in brackets, and
// the exponent with which the cost grows. A row: { name, unit, cells: [{ size, median, stall? }] }.
import { exponentOf, format, UNKNOWN } from './figures.mjs';

// Smaller values are noise.
const LEAST = { ms: 0.05, µs: 0.05, s: 0.01, MiB: 1, bytes: 1, '1/s': 0.1 };
// A row that grows faster, and takes longer at the largest size, is marked.
const MOST_EXPONENT = 0.2;
const MOST_MS = 5;
const IN_MS = { ms: 1, µs: 0.001, s: 1000 };

export const UNITS = Object.keys(LEAST);

export function growthOf({ unit, cells }) {
  return exponentOf(
    cells.map(({ size, median }) => [size, median]),
    LEAST[unit],
  );
}

// Whether the work takes noticeable time, and more of it the more there is.
export function isGrowing(row) {
  const most = (row.cells.at(-1)?.median ?? 0) * (IN_MS[row.unit] ?? 0);
  return growthOf(row) > MOST_EXPONENT && most > MOST_MS;
}

// One figure of a row at one size, or its largest one; NaN if it was not measured.
export function cellOf(rows, name, figure = 'median', size = undefined) {
  const row = rows.find((each) => each.name === name);
  if (figure === 'exponent') return (row && growthOf(row)) ?? Number.NaN;
  const cell = size === undefined ? row?.cells.at(-1) : row?.cells.find((each) => each.size === size);
  return cell?.[figure] ?? Number.NaN;
}

// The row whose event loop stood still for the longest time.
export function worstStall(rows) {
  const stalls = rows.flatMap(({ name, cells }) =>
    cells.flatMap(({ size, stall }) => (stall === undefined ? [] : [{ name, size, stall }])),
  );
  return stalls.toSorted((a, b) => b.stall - a.stall)[0] ?? { name: UNKNOWN, size: Number.NaN, stall: Number.NaN };
}

function texts(row, sizes) {
  const slope = growthOf(row);
  return [
    row.name,
    row.unit,
    ...sizes.map((size) => {
      const cell = row.cells.find((each) => each.size === size);
      const stall = cell?.stall === undefined ? '' : ` (${format(cell.stall)})`;
      return `${format(cell?.median)}${stall}`;
    }),
    slope === null ? UNKNOWN : slope.toFixed(2),
  ];
}

const sizesOf = (rows) =>
  [...new Set(rows.flatMap(({ cells }) => cells.map(({ size }) => size)))].toSorted((a, b) => a - b);

export function markdownTable(rows, of) {
  const sizes = sizesOf(rows);
  return [
    `| | | ${sizes.map((size) => `${format(size)} ${of}`).join(' | ')} | exponent |`,
    `|---|---|${sizes.map(() => '---:|').join('')}---:|`,
    ...rows.map((row) => {
      const cells = texts(row, sizes);
      return `| ${(isGrowing(row) ? [...cells.slice(0, -1), `**${cells.at(-1)}**`] : cells).join(' | ')} |`;
    }),
  ];
}

export function plainTable(rows, of) {
  const sizes = sizesOf(rows);
  const table = [
    ['median (longest stall)', '', ...sizes.map((size) => `${format(size)} ${of}`), 'exponent'],
    ...rows.map((row) => [...texts(row, sizes), isGrowing(row) ? 'grows' : '']),
  ];
  const widths = table[0].map((_, index) => Math.max(...table.map((cells) => cells[index].length)));
  return table.map((cells) =>
    cells
      .map((text, index) => (index < 2 ? text.padEnd(widths[index]) : text.padStart(widths[index] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}
