// Foreign text is shown so that nothing in it is invisible, and showing it loses nothing.
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteNamer, nameBytes } from '../../src/kernel/visible-bytes.js';
import {
  countNames,
  nameInLine,
  nameInProse,
  nameInvisible,
  restoreNamed,
  warnOfNames,
} from '../../src/kernel/visible-text.js';
import { ENGLISH_TERMINAL } from '../../src/terminal/texts.js';
import { hostile, RUNS } from '../terminal/fixtures.js';
import { runs } from '../support/runs.js';

const warn = (...texts: string[]) => warnOfNames(texts.map(nameInvisible), ENGLISH_TERMINAL.invisible);

describe('exact text', () => {
  test.each([
    ['an escape sequence with its payload', 'ls -la \u001b]; touch /x #\u0007', 'ls -la ⟨U+001B⟩]; touch /x #⟨U+0007⟩'],
    ['a carriage return', 'rm -rf /\rls', 'rm -rf /⟨U+000D⟩ls'],
    ['DEL and C1', '\u007f\u0085\u009b', '⟨U+007F⟩⟨U+0085⟩⟨U+009B⟩'],
    ['turned directions', 'a\u202eb\u2066c\u200f', 'a⟨U+202E⟩b⟨U+2066⟩c⟨U+200F⟩'],
    ['soft hyphens and zero width', 'r\u00adm\u200b\u200d\u2060\ufeff', 'r⟨U+00AD⟩m⟨U+200B⟩⟨U+200D⟩⟨U+2060⟩⟨U+FEFF⟩'],
    ['variation selectors, also of emoji', '❤\ufe0f\u{e0101}', '❤⟨U+FE0F⟩⟨U+E0101⟩'],
    ['tag characters', 'x\u{e0061}\u{e007f}', 'x⟨U+E0061⟩⟨U+E007F⟩'],
    [
      'fillers and blanks that look like another',
      '\u3164\u115f\u00a0\u2003\u3000\u2800',
      '⟨U+3164⟩⟨U+115F⟩⟨U+00A0⟩⟨U+2003⟩⟨U+3000⟩⟨U+2800⟩',
    ],
    ['halves of characters', '\ud83d!', '⟨U+D83D⟩!'],
    ['unassigned and private characters', '\u0378\ue000', '⟨U+0378⟩⟨U+E000⟩'],
    ['line separators', 'a\u2028b', 'a⟨U+2028⟩b'],
    ['a name that a text has itself', '⟨U+001B⟩', '⟨U+27E8⟩U+001B⟨U+27E9⟩'],
    ['nothing of ordinary text', 'a\n\tb  é e\u0301 漢字 😀 → שלום', 'a\n\tb  é e\u0301 漢字 😀 → שלום'],
  ])('names %s', (_, text, shown) => {
    expect(nameInvisible(text)).toBe(shown);
  });

  test('with the names put back is the text, in one line or in several', () => {
    const texts = fc.oneof(hostile(), fc.string({ unit: 'binary' }), fc.string({ unit: 'binary-ascii' }));
    fc.assert(
      fc.property(texts, (text) => {
        expect(restoreNamed(nameInvisible(text))).toBe(text);
        expect(restoreNamed(nameInLine(text))).toBe(text);
        expect(nameInvisible(text)).not.toMatch(/[^\P{C}\n\t]|\p{Default_Ignorable_Code_Point}/u);
        expect(nameInLine(text)).not.toMatch(/\p{C}|[^\P{White_Space} ]/u);
      }),
      { numRuns: runs(10) * RUNS.numRuns },
    );
  });

  test('a warning counts the named characters of all texts, and is absent without any', () => {
    expect(warn('ls', 'é ⟨x⟩')).toBeNull();
    expect(warn('a\u001b')).toBe('This text contains 1 invisible or control character, shown as ⟨U+…⟩.');
    expect(warn('a\u001b', '\u200b⟨')).toBe('This text contains 2 invisible or control characters, shown as ⟨U+…⟩.');
    expect(countNames(nameInvisible('\u{e0061}\u{e0062}'))).toBe(2);
  });

  test('takes time in proportion to the text', () => {
    expect(nameInvisible('\u001b]0;'.repeat(200_000))).toHaveLength(200_000 * 11);
  });
});

describe('prose', () => {
  test.each([
    [
      'keeps emoji, letters with joiners, direction marks and blanks',
      'a 👩\u200d💻 ☁\ufe0f می\u200cخواهم \u200fשלום\u00a0x',
    ],
    ['keeps characters of a later Unicode', '\u0378'],
  ])('%s', (_, text) => {
    expect(nameInProse(text)).toBe(text);
  });

  test.each([
    ['joiners between nothing', 'a \u200d b\u200d', 'a ⟨U+200D⟩ b⟨U+200D⟩'],
    ['selectors behind selectors or nothing', '\ufe0fa\ufe00\ufe01', '⟨U+FE0F⟩a\ufe00⟨U+FE01⟩'],
    ['controls, overrides and tags', '\u001b[31m\u202e\u{e0061}\u200b', '⟨U+001B⟩[31m⟨U+202E⟩⟨U+E0061⟩⟨U+200B⟩'],
  ])('names %s', (_, text, shown) => {
    expect(nameInProse(text)).toBe(shown);
  });
});

describe('bytes', () => {
  test('are named the same however they are cut', () => {
    fc.assert(
      fc.property(fc.uint8Array(), hostile(), fc.array(fc.nat(), { maxLength: 5 }), (bytes, text, places) => {
        const all = Buffer.concat([bytes, Buffer.from(text), bytes]);
        const namer = new ByteNamer();
        const ends = [...new Set(places.map((place) => place % (all.length + 1))), all.length].toSorted(
          (a, b) => a - b,
        );
        let from = 0;
        let shown = '';
        for (const end of ends) {
          shown += namer.push(all.subarray(from, end));
          from = end;
        }
        expect(shown + namer.end()).toBe(nameBytes(all));
      }),
      RUNS,
    );
  });

  test('that are UTF-8 are shown as their text, and others one by one', () => {
    expect(nameBytes(Buffer.from('é\u001b漢😀'))).toBe('é⟨U+001B⟩漢😀');
    expect(nameBytes(Uint8Array.from([0x61, 0xc3, 0x28, 0xff]))).toBe('a⟨C3⟩(⟨FF⟩');
  });
});
