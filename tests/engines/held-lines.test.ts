import { expect, test } from 'vitest';
import { Emitter } from '../../src/engines/emitter.js';
import { HeldLines } from '../../src/engines/held-lines.js';

function hold(texts: readonly string[]): { held: HeldLines; out: Emitter } {
  const out = new Emitter('test', () => true);
  const held = new HeldLines(out);
  let from = 0;
  for (const text of texts) {
    out.at({ stream: 'stdout', from, to: (from += text.length + 1) });
    held.add(text, true);
  }
  return { held, out };
}

test('lines come back in order, each with its own range, and the range at hand is as before', () => {
  const { held, out } = hold(['a', 'bb', 'ccc']);
  const seen: unknown[] = [];
  const before = out.range;
  held.release((text) => seen.push([text, out.range?.from, out.range?.to]), 2);
  expect(seen).toEqual([
    ['a', 0, 2],
    ['bb', 2, 5],
  ]);
  expect(held.texts).toEqual(['ccc']);
  expect(out.range).toBe(before);
});

test('several lines taken as one have one range over all of them', () => {
  expect(hold(['a', 'bb', 'ccc']).held.takeAsOne(2)).toEqual({
    text: 'a\nbb',
    range: { stream: 'stdout', from: 0, to: 5 },
  });
});

test('more than 16 MiB are too much, and there is room again after a release', () => {
  const { held } = hold([]);
  const piece = 'x'.repeat(1024 * 1024 - 1);
  for (let count = 0; count < 16; count += 1) expect(held.add(piece, true)).toBe(true);
  expect(held.add('', true)).toBe(false);
  held.release(() => {});
  expect(held.isEmpty).toBe(true);
  expect(held.add(piece, true)).toBe(true);
});
