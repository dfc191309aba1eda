// Each translated page has the headings, code blocks, tables, links and images of its English page. No code block of a
// translation runs: code-blocks.test.ts runs the same block of the English page.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBlocks, ROOT } from './page.js';

const TRANSLATED = /\.zh-CN(?=\.md)/g;

const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.zh-CN.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));

const englishOf = (page: string): string => page.replace(TRANSLATED, '');

const proseOf = (page: string): string =>
  readFileSync(join(ROOT, page), 'utf8').replaceAll(/^( *)```\w[^]*?^\1```$/gm, '');

const headingsOf = (page: string): string[] => proseOf(page).match(/^#{1,6}(?= )/gm) ?? [];

// The number of columns of each table row, in order.
const rowsOf = (page: string): number[] =>
  [...proseOf(page).matchAll(/^ *(\|.*\|)$/gm)].map(([, row = '']) => row.split(' |').length);

// Without the language: the two pages of README link to each other.
const linksOf = (page: string): string[] =>
  [...proseOf(page).matchAll(/!?\[[^\]]*\]\(([^)\s]+)\)/g)].map(
    ([link, target = '']) => `${link.startsWith('!') ? 'image ' : ''}${englishOf(target)}`,
  );

const blocksOf = (page: string): object[] =>
  readBlocks(page).map(({ language, text, notes }) => ({ language, text, notes: [...notes] }));

test('README, first run and approvals have a Chinese page', () => {
  expect(pages.toSorted()).toEqual([
    'README.zh-CN.md',
    'docs/guides/approvals.zh-CN.md',
    'docs/guides/first-run.zh-CN.md',
  ]);
});

test.each(pages)('%s has the headings, code blocks, tables, links and images of the English page', (page) => {
  const english = englishOf(page);
  expect(headingsOf(page)).toEqual(headingsOf(english));
  expect(blocksOf(page)).toEqual(blocksOf(english));
  expect(rowsOf(page)).toEqual(rowsOf(english));
  expect(linksOf(page)).toEqual(linksOf(english));
});
