import * as fc from 'fast-check';
import stringWidth from 'string-width';
import { describe, expect, test } from 'vitest';
import { oneLine, SafeStream, safeText } from '../../src/terminal/safe-text.js';
import { CONTROL, cut, hostile, RUNS } from './fixtures.js';

describe('safe text', () => {
  test.each([
    ['colours', '\u001b[1;31mred\u001b[0m', 'red'],
    ['cursor movement and erasing', 'a\u001b[2J\u001b[1;1Hb\u001b[?25lc', 'abc'],
    ['a window title', '\u001b]0;owned\u0007text', 'text'],
    ['a link', '\u001b]8;;http://evil\u001b\\click\u001b]8;;\u001b\\', 'click'],
    ['the clipboard', '\u001b]52;c;cm0gLXJm\u0007x', 'x'],
    ['device strings', '\u001bP1$r0m\u001b\\x\u001b_apc\u001b\\', 'x'],
    ['sequences of one byte', 'a\u009b31mb\u009d0;t\u009cc', 'abc'],
    ['character sets and resets', '\u001b(0x\u001bc\u001b7', 'x'],
  ])('leaves out %s', (_, text, safe) => {
    expect(safeText(text)).toBe(safe);
  });

  test.each([
    ['a lone escape', 'a\u001b', 'a␛'],
    ['a title without its end', '\u001b]0;title\nnext', '␛]0;title\nnext'],
    ['bell, backspace and NUL', '\u0007\b\u0000', '␇␈␀'],
    ['a carriage return that would overwrite the line', 'rm -rf /\rls', 'rm -rf /␍ls'],
    ['DEL and C1', '\u007f\u0085', '␡\ufffd'],
    ['turned directions', 'a\u202eb\u2066c', 'a\ufffdb\ufffdc'],
    ['half a character', '\ud83d!', '\ufffd!'],
  ])('shows %s', (_, text, safe) => {
    expect(safeText(text)).toBe(safe);
  });

  test('keeps newline, tab, marks, joiners and every ordinary character', () => {
    const text = 'a\n\tb ü e\u0301 漢字 👩‍💻 ☁️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 \u200fשלום';
    expect(safeText(text)).toBe(text);
  });

  test('takes the line ends of other systems for line ends', () => {
    expect(safeText('a\r\nb\u2028c')).toBe('a\nb\nc');
  });

  test('lets nothing through that a terminal obeys, and changes nothing a second time', () => {
    fc.assert(fc.property(hostile(), (text) => {
      const safe = safeText(text);
      expect(safe).not.toMatch(CONTROL);
      expect(safeText(safe)).toBe(safe);
    }), RUNS);
  });

  test('does not depend on where the text is cut', () => {
    fc.assert(fc.property(hostile(), fc.array(fc.nat()), (text, places) => {
      const stream = new SafeStream();
      expect(cut(text, places).map((piece) => stream.push(piece)).join('') + stream.end()).toBe(safeText(text));
    }), RUNS);
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
    fc.assert(fc.property(hostile(), fc.integer({ min: 1, max: 30 }), fc.constantFrom('start' as const, 'end' as const), (text, columns, keep) => {
      const line = oneLine(text, columns, keep);
      expect(stringWidth(line)).toBeLessThanOrEqual(columns);
      expect(line).not.toMatch(CONTROL);
      expect(line).not.toContain('\n');
    }), RUNS);
  });

  test('takes as long for 16 MiB as for a line', () => {
    expect(oneLine('x'.repeat(16 << 20), 10)).toBe('xxxxxxxxx…');
  });
});
