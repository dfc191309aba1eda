// Distinguishes pasted text from typed keys, however the paste markers are split, for any content.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MAX_PASTE_CHARS, PasteReader, type PasteEvent } from '../../src/terminal/paste.js';
import { cut } from './fixtures.js';

const START = '\u001b[200~';
const END = '\u001b[201~';

function read(pieces: readonly string[]): PasteEvent[] {
  const reader = new PasteReader();
  const events = [...pieces.flatMap((piece) => reader.push(piece)), ...reader.pause()];
  expect(reader.waits).toBe(false);
  return events.reduce<PasteEvent[]>((merged, event) => {
    const last = merged.at(-1);
    if (last?.kind === 'keys' && event.kind === 'keys')
      merged.splice(-1, 1, { kind: 'keys', text: last.text + event.text });
    else merged.push(event);
    return merged;
  }, []);
}

test('a paste is one text, with its line ends, and keys around it are keys', () => {
  expect(read([`ab${START}one\r\ntwo\rthree${END}`])).toEqual([
    { kind: 'keys', text: 'ab' },
    { kind: 'paste', text: 'one\ntwo\nthree' },
  ]);
  expect(read(['\u001b[A', '\u001b'])).toEqual([{ kind: 'keys', text: '\u001b[A\u001b' }]);
});

test('where the input is cut makes no difference', () => {
  const text = `a${START}x\n\u001b[31my${END}`;
  fc.assert(
    fc.property(fc.array(fc.nat()), (places) => {
      expect(read(cut(text, places))).toEqual([
        { kind: 'keys', text: 'a' },
        { kind: 'paste', text: 'x\n\u001b[31my' },
      ]);
    }),
  );
});

test('a mark of the end inside a paste does not let the rest pass for keys', () => {
  const events = read([`${START}hello${END}\rrm -rf /\r${END}`]);
  expect(events).toEqual([{ kind: 'paste', text: 'hello\nrm -rf /\n' }]);
});

test('keys after a pause are keys again', () => {
  const reader = new PasteReader();
  expect(reader.push(`${START}a${END}`)).toEqual([]);
  expect(reader.waits).toBe(true);
  expect(reader.pause()).toEqual([{ kind: 'paste', text: 'a' }]);
  expect(reader.push('\r')).toEqual([{ kind: 'keys', text: '\r' }]);
});

test('input beyond the limit is dropped, and the reader continues', () => {
  const reader = new PasteReader();
  reader.push(START);
  for (let size = 0; size <= MAX_PASTE_CHARS; size += 65_536) reader.push('x'.repeat(65_536));
  reader.push(END);
  expect(reader.pause()).toEqual([{ kind: 'paste', text: null }]);
  expect(reader.push('k')).toEqual([{ kind: 'keys', text: 'k' }]);
});

test('dropping the middle of a paste drops the rest of the paste', () => {
  const reader = new PasteReader();
  reader.push(`${START}before`);
  reader.forget();
  expect(reader.push(`after\r${END}`)).toEqual([]);
  expect(reader.pause()).toEqual([]);
  expect(reader.push('k')).toEqual([{ kind: 'keys', text: 'k' }]);
});
