// What a person writes reaches the model of Claude Code as text.
import { expect, test } from 'vitest';
import { claudeText } from '../../src/engines/claude/as-text.js';

const FILES = new Set(['note.txt', 'src', '/etc/hosts', 'a#b.txt', '文件.txt']);
const hasFile = (path: string): boolean => FILES.has(path);

test.each([
  ['/compact', ' /compact'],
  ['a /compact', 'a /compact'],
  ['//', ' //'],
  ['@note.txt', '\\@note.txt'],
  ['see @note.txt.', 'see \\@note.txt.'],
  ['see @note.txt#L3-9, please', 'see \\@note.txt#L3-9, please'],
  ['@a#b.txt', '\\@a#b.txt'],
  ['@src/', '\\@src/'],
  ['@/etc/hosts', '\\@/etc/hosts'],
  ['看看。@文件.txt', '看看。\\@文件.txt'],
  ['line\n@note.txt\t@note.txt', 'line\n\\@note.txt\t\\@note.txt'],
  ['@"note.txt"', '\\@"note.txt"'],
  ['@~/secret', '\\@~/secret'],
  ['@agent-helper', '\\@agent-helper'],
  ['@docs:file://a', '\\@docs:file://a'],
  ['/x @note.txt', ' /x \\@note.txt'],
])('%j could be read as a command or a name, and is escaped', (text, escaped) => {
  expect(claudeText(text, hasFile)).toBe(escaped);
});

test.each([
  'mail me@note.txt',
  '@Injectable()',
  '@types/node',
  '\\@note.txt',
  '@',
  '@ note.txt',
  '(@note.txt)',
  '!ls',
  '#x',
])('%j names nothing and stays as it is', (text) => {
  expect(claudeText(text, hasFile)).toBe(text);
});

test('without knowledge of the files, every name is escaped; lookups are bounded', () => {
  expect(claudeText('@any')).toBe('\\@any');
  let lookups = 0;
  const text = Array.from({ length: 1000 }, (_, index) => `@name${index}`).join(' ');
  const escaped = claudeText(text, () => {
    lookups += 1;
    return false;
  });
  expect(lookups).toBeLessThanOrEqual(600);
  expect(escaped.split('\\@')).toHaveLength(801);
});
