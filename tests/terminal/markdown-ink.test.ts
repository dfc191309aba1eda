// Markdown in a terminal is coloured while it arrives; no text is removed.
import { stripVTControlCharacters } from 'node:util';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MarkdownInk } from '../../src/terminal/markdown-ink.js';
import { Wrapper, wrapText } from '../../src/terminal/wrap.js';
import { cut, hostile, RUNS } from './fixtures.js';

const BOLD = '\u001b[1m';
const BOLD_OFF = '\u001b[22m';
const CODE = '\u001b[36m';
const CODE_OFF = '\u001b[39m';

function draw(text: string, width = 60): string {
  const wrapper = new Wrapper(width, {}, new MarkdownInk());
  return wrapper.push(text) + wrapper.end();
}

test.each([
  ['# Title\ntext', `${BOLD}# Title${BOLD_OFF}\ntext`],
  ['a **b** c', `a **${BOLD}b**${BOLD_OFF} c`],
  ['run `ls **` now', `run ${CODE}\`ls **\`${CODE_OFF} now`],
  ['an open `code\nends with its line', `an open ${CODE}\`code${CODE_OFF}\nends with its line`],
  ['C# and a#b', 'C# and a#b'],
])('%j is coloured', (text, drawn) => {
  expect(draw(text)).toBe(drawn);
});

test('a fenced block is coloured as a whole, and nothing in it is taken for Markdown', () => {
  const drawn = draw('```sh\n# no title\n**x**\n```\nafter');
  expect(drawn).not.toContain(BOLD);
  expect(drawn.endsWith(`${CODE_OFF}\nafter`)).toBe(true);
});

test('without its colours it is the text, however it is cut, and all colours end with it', () => {
  const marks = fc
    .array(fc.constantFrom('`', '```', '**', '*', '#', '# ', '\n', ' ', 'a', 'code'), { maxLength: 30 })
    .map((all) => all.join(''));
  fc.assert(
    fc.property(fc.oneof(marks, hostile()), fc.array(fc.nat()), (text, places) => {
      const wrapper = new Wrapper(20, {}, new MarkdownInk());
      const drawn =
        cut(text, places)
          .map((piece) => wrapper.push(piece))
          .join('') + wrapper.end();
      expect(stripVTControlCharacters(drawn)).toBe(wrapText(text, 20));
      const open = { bold: false, code: false };
      for (const [code] of drawn.matchAll(/\u001b\[\d+m/g)) {
        if (code === BOLD || code === BOLD_OFF) open.bold = code === BOLD;
        else open.code = code === CODE;
      }
      expect(open).toEqual({ bold: false, code: false });
    }),
    RUNS,
  );
});
