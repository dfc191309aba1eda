// Wrapping of text that a person approves: nothing is lost, and wrapped lines differ visibly from line ends.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { restoreNamed } from '../../src/kernel/visible-text.js';
import { wrapExact } from '../../src/terminal/wrap-exact.js';
import { CONTROL, expectFits, hostile, RUNS } from './fixtures.js';
import { runs } from '../support/runs.js';

const MARGINS = { first: '> ', rest: '| ', wrapped: '↪ ' };

test.each([
  ['blanks and blank lines stay', 'a   b\n\n\n c', 20, '> a   b\n| \n| \n|  c'],
  ['a line breaks behind a blank', 'the quick brown', 12, '> the quick \n↪ brown'],
  ['a word longer than a line is broken', 'abcdefghijkl', 8, '> abcdef\n↪ ghijkl'],
  ['blanks that end a line are named', 'ls  \nx\t', 20, '> ls ⟨U+0020⟩\n| x⟨U+0009⟩'],
  ['many blanks do not push a command out of sight', `a${' '.repeat(12)}; b`, 10, '> a       \n↪      ; b'],
  ['a name is not broken', 'abcdef\u001bx', 12, '> abcdef\n↪ ⟨U+001B⟩x'],
])('%s', (_, text, width, shown) => {
  expect(wrapExact(text, width, MARGINS)).toBe(shown);
});

test('with the margins taken away and the names put back is the text, at any width', () => {
  fc.assert(
    fc.property(hostile(), fc.constantFrom(8, 13, 20, 80, Infinity), (input, width) => {
      // A tab is shown as blanks.
      const text = input.replaceAll('\t', ' ');
      const shown = wrapExact(text, width, MARGINS);
      const lines = shown
        .split('\n')
        .map((line, index) => (line.startsWith('↪ ') || index === 0 ? '' : '\n') + line.slice(2));
      expect(restoreNamed(lines.join(''))).toBe(text);
      expect(shown).not.toMatch(CONTROL);
      expectFits(shown, width);
    }),
    { numRuns: runs(4) * RUNS.numRuns },
  );
});
