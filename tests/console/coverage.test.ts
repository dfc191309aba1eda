// Which parts of an approval were on the screen.
import { array, assert, integer, property, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { addPart, isWhole, type Part } from '../../console/src/state/coverage.js';

const GAP = 0.0001;
const cover = (...added: readonly (readonly [number, number])[]): readonly Part[] =>
  added.reduce<readonly Part[]>((parts, [from, to]) => addPart(parts, { from, to }, GAP), []);

test('a region is whole once its parts leave no gap, in whatever order they were on the screen', () => {
  expect(isWhole(cover([0, 0.5], [0.5, 1]), GAP)).toBe(true);
  expect(isWhole(cover([0.6, 1], [0, 0.3], [0.25, 0.7]), GAP)).toBe(true);
  expect(isWhole(cover([0, 0.5], [0.51, 1]), GAP)).toBe(false);
  expect(isWhole(cover([0.01, 1]), GAP)).toBe(false);
  expect(isWhole(cover([0, 0.99]), GAP)).toBe(false);
  expect(isWhole(cover(), GAP)).toBe(false);
});

test('a part outside the screen is not covered', () => {
  expect(cover([0.4, 0.4], [0.9, 0.2])).toEqual([]);
});

test('random parts are whole exactly if each of a thousand steps was in one of them', () => {
  const point = integer({ min: 0, max: 1000 });
  assert(
    property(array(tuple(point, point), { maxLength: 12 }), (pairs) => {
      const covered = Array.from({ length: 1000 }, () => false);
      for (const [one, other] of pairs) covered.fill(true, Math.min(one, other), Math.max(one, other));
      const parts = cover(
        ...pairs.map(([one, other]) => [Math.min(one, other) / 1000, Math.max(one, other) / 1000] as const),
      );
      expect(isWhole(parts, GAP)).toBe(covered.every(Boolean));
    }),
  );
});
