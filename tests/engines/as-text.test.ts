// Prompts reach the model as text, although some CLIs execute a slash command and open a file after an @.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { asText } from '../../src/engines/as-text.js';
import { runs } from '../support/runs.js';

const FILES = new Set(['README.md', 'src/a.ts', '/etc/hosts', 'my file.txt']);
const escape = (text: string): string => asText(text, (path) => FILES.has(path));

// The pattern of Gemini CLI 0.61.
const GEMINI_AT = /(?<!\\)@(?:(?:"(?:[^"]*)")|(?:\\.|[^ \t\n\r,;!?()[\]{}.]|\.(?!$|[ \t\n\r])))+/g;

test.each(['/quit', '/init', '/deploy now\nplease', '//', '/'])(
  '%j gets a space in front, so it is no command',
  (text) => {
    expect(escape(text)).toBe(` ${text}`);
  },
);

test.each([
  ['@README.md', '\\@README.md'],
  ['see @src/a.ts, please', 'see \\@src/a.ts, please'],
  ['(@README.md)', '(\\@README.md)'],
  ['x@README.md', 'x\\@README.md'],
  ['@/etc/hosts', '\\@/etc/hosts'],
  ['@"my file.txt"', '\\@"my file.txt"'],
  ['@my\\ file.txt', '\\@my\\ file.txt'],
  ['@helper do it', '\\@helper do it'],
  ['@docs://page', '\\@docs://page'],
  ['/quit @README.md', ' /quit \\@README.md'],
])('%j becomes %j', (text, expected) => {
  expect(escape(text)).toBe(expected);
});

test.each([
  '',
  'Postgres 17',
  ' /quit',
  'a/b',
  'me@example.com',
  'npm i x@1.2.3',
  'git@github.com:a/b.git',
  '@',
  'a @ b',
  '\\@README.md',
  '@nothing.here',
  'ünï 漢字 🚀',
])('%j stays as it is', (text) => {
  expect(escape(text)).toBe(text);
});

test('for any text: no command or file reference is left; only spaces and backslashes are added', () => {
  const piece = fc.oneof(
    fc.constantFrom('@', '/', '\\', '"', ' ', '\n', '.', 'README.md', 'src/a.ts', '@README.md', '@"'),
    fc.string(),
  );
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
      (text) => {
        const result = escape(text);
        expect(result.startsWith('/')).toBe(false);
        for (const [word] of result.matchAll(GEMINI_AT)) {
          const name = word.slice(1).replace(/\\(.)/g, '$1');
          expect(FILES.has(name) || FILES.has(name.replaceAll('"', ''))).toBe(false);
        }
        expect(result.replaceAll('\\', '').replace(/^ /, '')).toBe(text.replaceAll('\\', '').replace(/^ /, ''));
      },
    ),
    { numRuns: runs(2000) },
  );
});

test('a text with a million @ looks few of them up', () => {
  let lookups = 0;
  const text = Array.from({ length: 1_000_000 }, (_, index) => `@f${index}.x`).join(' ');
  const result = asText(text, () => (lookups += 1) < 0);
  expect(lookups).toBeLessThan(1000);
  expect(result).toContain('\\@f999999.x');
});
