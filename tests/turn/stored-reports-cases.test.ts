// Which events of a turn are stored already: exactly those, each once, in whatever order they come back.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { StoredReports } from '../../src/turn/stored-reports.js';

type Report = Parameters<StoredReports['add']>[0];

const report = (type: string, from: number, to = from + 5, stream: 'stdout' | 'stderr' = 'stdout'): Report => ({
  type,
  range: { stream, from, to },
  data: {},
});

const keyOf = ({ type, range, data }: Report): string => JSON.stringify([type, range ?? data]);

function storedOf(reports: readonly Report[]): StoredReports {
  const stored = new StoredReports();
  for (const each of reports) stored.add(each);
  return stored;
}

test('an event counts as stored once for each time it was stored', () => {
  const stored = storedOf([report('a', 0), report('a', 0), report('b', 0)]);
  expect(stored.consume(report('a', 0))).toBe(true);
  expect(stored.consume(report('a', 0))).toBe(true);
  expect(stored.consume(report('a', 0))).toBe(false);
  expect(stored.consume(report('b', 0))).toBe(true);
  expect(stored.consume(report('b', 0))).toBe(false);
});

test('type, stream, beginning and end of the range all count', () => {
  const stored = storedOf([report('a', 0, 5)]);
  expect(stored.consume(report('b', 0, 5))).toBe(false);
  expect(stored.consume(report('a', 0, 5, 'stderr'))).toBe(false);
  expect(stored.consume(report('a', 1, 5))).toBe(false);
  expect(stored.consume(report('a', 0, 6))).toBe(false);
  expect(stored.consume(report('a', 0, 5))).toBe(true);
});

test('an event without a range is known by its data', () => {
  const stored = storedOf([{ type: 'a', range: null, data: { text: 'x' } }]);
  expect(stored.consume({ type: 'a', range: null, data: { text: 'y' } })).toBe(false);
  expect(stored.consume({ type: 'a', range: null, data: { text: 'x' } })).toBe(true);
  expect(stored.consume({ type: 'a', range: null, data: { text: 'x' } })).toBe(false);
});

test('finds exactly what a list of keys would find, in any order', () => {
  const any = fc.record({
    type: fc.constantFrom('a', 'b'),
    range: fc.option(
      fc.record({
        stream: fc.constantFrom('stdout' as const, 'stderr' as const),
        from: fc.nat(6),
        to: fc.integer({ min: 6, max: 8 }),
      }),
    ),
    data: fc.constantFrom({ text: 'x' }, { text: 'y' }),
  });
  fc.assert(
    fc.property(fc.array(any, { maxLength: 40 }), fc.array(any, { maxLength: 40 }), (kept, found) => {
      const left = kept.map(keyOf);
      const stored = storedOf(kept);
      for (const each of [...found, ...kept]) {
        const at = left.indexOf(keyOf(each));
        expect(stored.consume(each)).toBe(at >= 0);
        if (at >= 0) left.splice(at, 1);
      }
    }),
  );
});

test('a million events need no object each', () => {
  const stored = new StoredReports();
  const begin = process.memoryUsage();
  for (let index = 0; index < 1_000_000; index += 1) stored.add(report('a', index * 5));
  global.gc?.();
  const { arrayBuffers } = process.memoryUsage();
  expect(arrayBuffers - begin.arrayBuffers).toBeLessThan(64 * 1024 * 1024);
  let count = 0;
  for (let index = 0; index < 1_000_000; index += 1) if (stored.consume(report('a', index * 5))) count += 1;
  expect(count).toBe(1_000_000);
});
