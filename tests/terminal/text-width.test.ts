import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { expect, test } from 'vitest';
import { textWidth } from '../../src/terminal/text-width.js';
import { hostile, RUNS } from './fixtures.js';

test('plain text, which is counted, is as wide as the tables say', () => {
  const plain = fc.string({
    unit: fc.constantFrom(...Array.from({ length: 95 }, (_, at) => String.fromCharCode(0x20 + at)), '…'),
  });
  fc.assert(
    fc.property(plain, (text) => void expect(textWidth(text)).toBe(stringWidth(text))),
    RUNS,
  );
});

test('so is any other text', () => {
  expect(textWidth('这是…')).toBe(5);
  fc.assert(
    fc.property(hostile(), (text) => void expect(textWidth(text)).toBe(stringWidth(text))),
    RUNS,
  );
});
