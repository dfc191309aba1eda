// The tables of the growth benches: the fitted exponent, the rows that are marked as growing, and the figures of aims.
import { expect, test } from 'vitest';
import { exponentOf } from '../../bench/lib/figures.mjs';
import {
  cellOf,
  growthOf,
  isGrowing,
  markdownTable,
  plainTable,
  worstStall,
  type GrowthRow,
} from '../../bench/lib/growth-table.mjs';
import { watch } from '../../bench/lib/stalls.mjs';

const SIZES = [1000, 10_000, 100_000];

function row(name: string, toMedian: (size: number) => number, unit = 'ms', stall?: number): GrowthRow {
  const more = stall === undefined ? {} : { stall };
  return { name, unit, cells: SIZES.map((size) => ({ size, median: toMedian(size), ...more })) };
}

test.each([
  [0, () => 7],
  [1, (size: number) => size / 100],
  [2, (size: number) => size ** 2],
  [-1, (size: number) => 1000 / size],
  [0.5, (size: number) => 3 * Math.sqrt(size)],
])('the exponent of %d is found in exact figures', (exponent, toMedian) => {
  expect(exponentOf(SIZES.map((size) => [size, toMedian(size)] as const))).toBeCloseTo(exponent, 9);
});

test('the exponent is that of the least squares, not of the ends', () => {
  // The logarithms to base ten are (0, 0), (1, 3), (2, 0).
  expect(
    exponentOf([
      [1, 1],
      [10, 1000],
      [100, 1],
    ]),
  ).toBeCloseTo(0, 9);
  expect(
    exponentOf([
      [1, 1],
      [10, 1],
      [100, 1],
      [1000, 10],
    ]),
  ).toBeCloseTo(0.3, 9);
});

test('a single size has no exponent, and neither have no sizes', () => {
  expect(exponentOf([[10, 5]])).toBeNull();
  expect(
    exponentOf([
      [10, 5],
      [10, 7],
    ]),
  ).toBeNull();
  expect(exponentOf([])).toBeNull();
});

test('times below the noise are constant, and zero is a time', () => {
  expect(growthOf(row('fast', (size) => size / 1e7))).toBe(0);
  expect(growthOf(row('nothing', () => 0))).toBe(0);
  expect(growthOf(row('nothing', () => 0, 'µs'))).toBe(0);
});

test('a row grows if its exponent is over 0.2 and it takes more than 5 ms, in whatever unit', () => {
  expect(isGrowing(row('linear', (size) => size / 1000))).toBe(true);
  expect(isGrowing(row('linear and short', (size) => size / 100_000))).toBe(false);
  expect(isGrowing(row('constant and long', () => 500))).toBe(false);
  expect(isGrowing(row('linear, in seconds', (size) => size / 1e6, 's'))).toBe(true);
  expect(isGrowing(row('linear, in microseconds', (size) => size / 1000, 'µs'))).toBe(false);
  expect(isGrowing(row('not a time', (size) => size, 'MiB'))).toBe(false);
});

test('aims get the figure of a size, of the largest one, or the exponent, and NaN if it was not measured', () => {
  const rows = [row('a', (size) => size / 1000, 'ms', 3)];
  expect(cellOf(rows, 'a')).toBe(100);
  expect(cellOf(rows, 'a', 'median', 10_000)).toBe(10);
  expect(cellOf(rows, 'a', 'stall', 1000)).toBe(3);
  expect(cellOf(rows, 'a', 'exponent')).toBeCloseTo(1, 9);
  expect(cellOf(rows, 'a', 'median', 7)).toBeNaN();
  expect(cellOf(rows, 'b')).toBeNaN();
  expect(cellOf(rows, 'b', 'exponent')).toBeNaN();
  expect(cellOf([], 'a', 'stall')).toBeNaN();
});

test('the worst stall is that of any row at any size', () => {
  const other = { name: 'b', unit: 'ms', cells: [{ size: 10, median: 1, stall: 60 }] };
  expect(worstStall([row('a', () => 1, 'ms', 3), other, row('c', () => 1)])).toEqual({
    name: 'b',
    size: 10,
    stall: 60,
  });
  expect(worstStall([row('c', () => 1)]).stall).toBeNaN();
});

test('a table has every size once, and a dash where a row was not measured', () => {
  const rows = [
    row('a', (size) => size / 1000, 'ms', 3.25),
    { name: 'b', unit: 'µs', cells: [{ size: 500, median: 2 }] },
  ];
  expect(markdownTable(rows, 'runs')).toEqual([
    '| | | 500 runs | 1,000 runs | 10,000 runs | 100,000 runs | exponent |',
    '|---|---|---:|---:|---:|---:|---:|',
    '| a | ms | – | 1 (3.25) | 10 (3.25) | 100 (3.25) | **1.00** |',
    '| b | µs | 2 | – | – | – | – |',
  ]);
  const plain = plainTable(rows, 'runs');
  expect(plain[1]).toMatch(/^a +ms +– +1 \(3\.25\) .* 1\.00 +grows$/);
  expect(plain[2]).toMatch(/^b +µs +2 /);
});

test('work that blocks the event loop is a stall, and work that lets others run is none', async () => {
  let blockedMs = 0;
  const block = (): void => {
    const from = performance.now();
    do blockedMs = performance.now() - from;
    while (blockedMs < 20);
  };
  const later = await watch(async () => {
    await new Promise((resolve) => setImmediate(resolve));
    block();
  });
  expect(later.stall).toBeGreaterThanOrEqual(blockedMs);
  expect(later.ms).toBeGreaterThanOrEqual(blockedMs);
  // Also before the first tick.
  expect((await watch(block)).stall).toBeGreaterThanOrEqual(blockedMs);
  const polite = await watch(async () => {
    for (let ticks = 0; ticks < 2000; ticks += 1) await new Promise((resolve) => setImmediate(resolve));
  });
  expect(polite.stall).toBeLessThan(polite.ms);
});
