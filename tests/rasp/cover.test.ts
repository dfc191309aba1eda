// The incremental cover gives the same result as sorting all ranges of a stream.
import { expect, test } from 'vitest';
import { LogCover, SeenRanges, type Cover } from '../../src/rasp/cover.js';
import { seededRandom } from '../support/seeded-random.js';

type Range = readonly [from: number, to: number];

function measure(ranges: readonly Range[], begin = 0): Cover {
  const cover = new LogCover(new SeenRanges(), { log: 1, begin });
  for (const [from, to] of ranges) cover.add(from, to);
  return cover.finish();
}

// The definition, in memory that grows with the ranges.
function sortAll(ranges: readonly Range[]): Cover {
  const all = [...new Map(ranges.map((range) => [range.join(), range])).values()].toSorted(
    (a, b) => a[0] - b[0] || a[1] - b[1],
  );
  let [covered, holes, overlaps] = [0, 0, 0];
  for (const [from, to] of all) {
    if (from > covered) holes += 1;
    if (from < covered) overlaps += 1;
    covered = Math.max(covered, to);
  }
  return { covered, holes, overlaps };
}

test('lines in order, repeated lines and lines that were held back cover a log', () => {
  expect(
    measure([
      [0, 5],
      [5, 9],
      [9, 12],
    ]),
  ).toEqual({ covered: 12, holes: 0, overlaps: 0 });
  expect(
    measure([
      [0, 5],
      [0, 5],
      [5, 9],
      [9, 12],
      [0, 5],
      [5, 9],
    ]),
  ).toEqual({ covered: 12, holes: 0, overlaps: 0 });
  expect(
    measure([
      [5, 9],
      [9, 12],
      [5, 9],
      [0, 5],
      [12, 13],
    ]),
  ).toEqual({ covered: 13, holes: 0, overlaps: 0 });
  expect(
    measure(
      [
        [7, 9],
        [9, 12],
      ],
      7,
    ),
  ).toEqual({ covered: 12, holes: 0, overlaps: 0 });
});

test('a missing line is a hole, and a range within or across others an overlap', () => {
  expect(
    measure([
      [0, 5],
      [9, 12],
    ]),
  ).toEqual({ covered: 12, holes: 1, overlaps: 0 });
  expect(
    measure([
      [0, 5],
      [5, 9],
      [1, 4],
    ]),
  ).toEqual({ covered: 9, holes: 0, overlaps: 1 });
  expect(
    measure([
      [0, 5],
      [4, 9],
    ]),
  ).toEqual({ covered: 9, holes: 0, overlaps: 1 });
});

test('nearly ordered ranges with repetitions and gaps give the same result as sorting', () => {
  const below = seededRandom(7);
  const random = (): number => below(1_000_000) / 1_000_000;
  for (let time = 0; time < 300; time += 1) {
    const lines: Range[] = [];
    for (let at = 0; lines.length < 60;) {
      const to = at + 1 + Math.floor(random() * 9);
      lines.push([at, to]);
      at = to;
    }
    const ranges = lines
      .filter(() => random() > 0.03)
      .flatMap((line, index, all) => (random() > 0.7 ? [line, all[Math.floor(random() * index)] ?? line] : [line]))
      .map((line, index) => ({ line, place: index + random() * 8 }))
      .toSorted((a, b) => a.place - b.place)
      .map(({ line }) => line);
    expect(measure(ranges)).toEqual(sortAll(ranges));
  }
});

test('a known range is found after a million others, and hardly any unknown one', () => {
  const seen = new SeenRanges();
  for (let at = 0; at < 1_000_000; at += 1) seen.add(0, at * 90, at * 90 + 90);
  let [mistakes, missed] = [0, 0];
  for (let at = 0; at < 1_000_000; at += 10) {
    if (!seen.has(0, at * 90, at * 90 + 90)) missed += 1;
    if (seen.has(0, at * 90 + 1, at * 90 + 90)) mistakes += 1;
    if (seen.has(1, at * 90, at * 90 + 90)) mistakes += 1;
  }
  expect(missed).toBe(0);
  expect(mistakes).toBeLessThan(40);
});

test('more ranges ahead of a hole than are kept count the hole once', () => {
  const ranges: Range[] = Array.from({ length: 30_000 }, (_, index) => [index * 2 + 10, index * 2 + 12] as const);
  expect(measure([[0, 5], ...ranges])).toEqual({ covered: 60_010, holes: 1, overlaps: 0 });
});
