import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { sourceLiteral } from '../../src/engines/source-literal.js';
import { runs } from '../support/runs.js';

const OPENING = '"text":"';

test('the literal of the line is used unchanged, escapes included', () => {
  expect(sourceLiteral('{"id":1,"text":"plain 漢字"}', OPENING, 'plain 漢字')).toBe('"plain 漢字"');
  expect(sourceLiteral('{"text":"\\u0041 \\/ \\"q\\" \\\\"}', OPENING, 'A / "q" \\')).toBe(
    '"\\u0041 \\/ \\"q\\" \\\\"',
  );
});

test('a literal that belongs to another member of the same name is not taken', () => {
  expect(sourceLiteral('{"a":{"text":"other"},"text":"mine"}', OPENING, 'mine')).toBe('"mine"');
  // The first one looks like the value up to its first quote, which is an escaped one.
  expect(sourceLiteral('{"a":{"text":"abc\\" x"},"text":"abc\\\\"}', OPENING, 'abc\\')).toBe('"abc\\\\"');
  expect(sourceLiteral('{"a":{"text":"a\\nb"},"text":"a\\\\nb"}', OPENING, 'a\\nb')).toBe('"a\\\\nb"');
});

test('a line that writes the member in another way is no obstacle', () => {
  expect(sourceLiteral('{"text" : "spaced"}', OPENING, 'spaced')).toBe('"spaced"');
  expect(sourceLiteral('', OPENING, 'x')).toBe('"x"');
  expect(sourceLiteral('{"text":"cut', OPENING, 'cut')).toBe('"cut"');
});

test('for any line, the literal decodes to the value', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', '"', '\\', '\n', 'u0041', '漢', '🚀', '\u2028', '{', ':'),
    maxLength: 12,
  });
  fc.assert(
    fc.property(text, text, fc.boolean(), (other, value, first) => {
      const members = [JSON.stringify({ text: other }), JSON.stringify({ text: value })];
      const line = `[${(first ? members : members.toReversed()).join(',')}]`;
      expect(JSON.parse(sourceLiteral(line, OPENING, value))).toBe(value);
    }),
    { numRuns: runs(2000), seed: 7 },
  );
});
