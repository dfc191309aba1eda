import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { restoreNamed } from '../../src/kernel/visible-text.js';
import { exactLine, oneLine, SafeStream, safeText } from '../../src/terminal/safe-text.js';
import { CONTROL, cut, hostile, RUNS } from './fixtures.js';

describe('safe text', () => {
  test.each([
    ['an escape sequence with its payload', 'ls \u001b]; touch /x #\u0007', 'ls ⟨U+001B⟩]; touch /x #⟨U+0007⟩'],
    ['sequences of one byte', 'a\u009b31mb\u009d0;t\u009cc', 'a⟨U+009B⟩31mb⟨U+009D⟩0;t⟨U+009C⟩c'],
    ['bell, backspace and NUL', '\u0007\b\u0000', '⟨U+0007⟩⟨U+0008⟩⟨U+0000⟩'],
    ['a carriage return that would overwrite the line', 'rm -rf /\rls', 'rm -rf /⟨U+000D⟩ls'],
    ['DEL and C1', '\u007f\u0085', '⟨U+007F⟩⟨U+0085⟩'],
    ['turned directions', 'a\u202eb\u2066c', 'a⟨U+202E⟩b⟨U+2066⟩c'],
    ['half a character', '\ud83d!', '⟨U+D83D⟩!'],
  ])('names %s', (_, text, safe) => {
    expect(safeText(text)).toBe(safe);
  });

  test('keeps newline, tab, marks, joiners and every ordinary character', () => {
    const text = 'a\n\tb ü e\u0301 漢字 👩‍💻 ☁️ \u200fשלום';
    expect(safeText(text)).toBe(text);
  });

  test('takes CR LF for a line end', () => {
    expect(safeText('a\r\nb')).toBe('a\nb');
  });

  test('lets nothing through that a terminal obeys, and drops nothing', () => {
    fc.assert(
      fc.property(hostile(), (text) => {
        const safe = safeText(text);
        expect(safe).not.toMatch(CONTROL);
        expect(restoreNamed(safe)).toBe(text.replaceAll('\r\n', '\n'));
      }),
      RUNS,
    );
  });

  test('does not depend on where the text is cut', () => {
    fc.assert(
      fc.property(hostile(), fc.array(fc.nat()), (text, places) => {
        const stream = new SafeStream();
        expect(
          cut(text, places)
            .map((piece) => stream.push(piece))
            .join('') + stream.end(),
        ).toBe(safeText(text));
      }),
      RUNS,
    );
  });

  test('stays fast on a sequence that never ends', () => {
    const text = '\u001b]0;'.repeat(50_000) + '\u001b['.repeat(50_000);
    expect(safeText(text)).not.toMatch(CONTROL);
    expect(new SafeStream().push(text)).not.toMatch(CONTROL);
  });
});

describe('one line', () => {
  test.each([
    ['short', 10, 'short'],
    ['two\n  lines\there', 20, 'two lines here'],
    ['exactly ten', 11, 'exactly ten'],
    ['one too much', 11, 'one too mu…'],
    ['漢字漢字', 8, '漢字漢字'],
    ['漢字漢字', 7, '漢字漢…'],
    ['漢字漢字', 6, '漢字…'],
    ['e\u0301e\u0301e\u0301', 3, 'e\u0301e\u0301e\u0301'],
    ['e\u0301e\u0301e\u0301', 2, 'e\u0301…'],
    ['👩‍💻👩‍💻', 3, '👩‍💻…'],
    ['x', 0, ''],
  ])('%j in %i columns is %j', (text, columns, line) => {
    expect(oneLine(text, columns)).toBe(line);
  });

  test('keeps the end of a path', () => {
    expect(oneLine('/a/very/long/path/file.ts', 12, 'end')).toBe('…ath/file.ts');
  });

  test('is never too wide, never broken and harmless', () => {
    fc.assert(
      fc.property(
        hostile(),
        fc.integer({ min: 1, max: 30 }),
        fc.constantFrom('start' as const, 'end' as const),
        (text, columns, keep) => {
          const line = oneLine(text, columns, keep);
          expect(stringWidth(line)).toBeLessThanOrEqual(columns);
          expect(line).not.toMatch(CONTROL);
          expect(line).not.toContain('\n');
        },
      ),
      RUNS,
    );
  });

  test('of a command keeps every blank and names the line ends', () => {
    expect(exactLine('a  b\n\tc\u00a0', 80)).toBe('a  b⟨U+000A⟩⟨U+0009⟩c⟨U+00A0⟩');
    expect(exactLine('abc\u001bdef', 12)).toBe('abc⟨U+001B⟩…');
    expect(exactLine('abc\u001bdef', 11)).toBe('abc…');
    fc.assert(
      fc.property(hostile(), (text) => restoreNamed(exactLine(text, Infinity)) === text),
      RUNS,
    );
  });

  test('takes as long for 16 MiB as for a line', () => {
    expect(oneLine('x'.repeat(16 << 20), 10)).toBe('xxxxxxxxx…');
  });
});
