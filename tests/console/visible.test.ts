// Bytes in the evidence view: text unchanged, everything else by name, no character that hides or reorders text.
import { assert, property, string } from 'fast-check';
import { expect, test } from 'vitest';
import { nameBytes as showBytes } from '../../src/kernel/visible-bytes.js';

test.each([
  ['plain \n\ttext é 漢字 😀', 'plain \n\ttext é 漢字 😀'],
  ['\u202egnp.exe', '⟨U+202E⟩gnp.exe'],
  ['a\u0000b\u001b[31m', 'a⟨U+0000⟩b⟨U+001B⟩[31m'],
])('%j is shown as %j', (text, shown) => {
  expect(showBytes(Buffer.from(text))).toBe(shown);
});

test.each([
  [[0xff], '⟨FF⟩'],
  [[0x61, 0xc3, 0x28], 'a⟨C3⟩('],
  [[0xe0, 0x80, 0x80], '⟨E0⟩⟨80⟩⟨80⟩'],
  [[0xed, 0xa0, 0x80], '⟨ED⟩⟨A0⟩⟨80⟩'],
  [[0xf4, 0x90, 0x80, 0x80], '⟨F4⟩⟨90⟩⟨80⟩⟨80⟩'],
  [[0xf0, 0x9f, 0x98], '⟨F0⟩⟨9F⟩⟨98⟩'],
  [[0xef, 0xbf, 0xbd, 0xfe], '\ufffd⟨FE⟩'],
])('bytes %j that are no text are named one by one: %s', (bytes, shown) => {
  expect(showBytes(Uint8Array.from(bytes))).toBe(shown);
});

test('text is decoded unchanged, whatever follows it', () => {
  assert(
    property(string({ unit: 'grapheme' }), (text) => {
      const bytes = Buffer.concat([Buffer.from(text), Buffer.from([0xff])]);
      expect(showBytes(bytes)).toBe(`${showBytes(Buffer.from(text))}⟨FF⟩`);
    }),
  );
});
