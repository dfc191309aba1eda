// Every relative link in the Markdown files of the repository points to an existing file and an existing heading.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');
const pages = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && existsSync(join(ROOT, path)));

// Code blocks and code spans contain no links and no headings.
function withoutCode(markdown: string): string {
  return markdown.replaceAll(/^(`{3,})[^]*?^\1`*$/gm, '').replaceAll(/(`+)(?!`)[^]*?[^`]\1(?!`)/g, 'code');
}

function anchorsOf(path: string): ReadonlySet<string> {
  const seen = new Map<string, number>();
  const text = readFileSync(path, 'utf8').replaceAll(/^(`{3,})[^]*?^\1`*$/gm, '');
  return new Set(
    [...text.matchAll(/^#{1,6} +(.+?) *#*$/gm)].map(([, heading = '']) => {
      const anchor = anchorOf(heading);
      const count = seen.get(anchor) ?? 0;
      seen.set(anchor, count + 1);
      return count === 0 ? anchor : `${anchor}-${count}`;
    }),
  );
}

// The anchor that GitHub gives to a heading: the text of links, lower case, without punctuation, a dash for each blank.
function anchorOf(heading: string): string {
  return heading
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M}_\- ]/gu, '')
    .replaceAll(' ', '-');
}

function problemOf(page: string, link: string): string | null {
  const [path = '', anchor = ''] = decodeURIComponent(link).split('#');
  const target = path === '' ? join(ROOT, page) : join(ROOT, dirname(page), path);
  if (relative(ROOT, target).startsWith('..')) return 'leaves the repository';
  if (!existsSync(target)) return 'no such file';
  return anchor === '' || anchorsOf(target).has(anchor) ? null : 'no such heading';
}

function linksOf(page: string): string[] {
  return [...withoutCode(readFileSync(join(ROOT, page), 'utf8')).matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^(?:[a-z][a-z0-9+.-]*:|\/\/)/i.test(link));
}

test('every relative link and anchor in Markdown files points to an existing file and heading', () => {
  const links = pages.flatMap((page) => linksOf(page).map((link) => ({ page, link })));
  expect(links.length).toBeGreaterThan(100);
  const broken = links.flatMap(({ page, link }) => {
    const problem = problemOf(page, link);
    return problem === null ? [] : [`${page}: ${link}: ${problem}`];
  });
  expect(broken).toEqual([]);
});

test('every page in docs can be reached from docs/README.md', () => {
  const reached = new Set(['docs/README.md']);
  for (const page of reached)
    for (const link of linksOf(page)) {
      const target = join(dirname(page), link.split('#')[0] ?? '');
      if (link.startsWith('#') || !existsSync(join(ROOT, target))) continue;
      const targets = target.endsWith('/') ? pages.filter((each) => dirname(each) === join(target, '.')) : [target];
      for (const each of targets) if (each.startsWith('docs/') && each.endsWith('.md')) reached.add(each);
    }
  expect(pages.filter((page) => page.startsWith('docs/') && !reached.has(page))).toEqual([]);
});

test.each([
  ['Who may do what', 'who-may-do-what'],
  ['`parley run`', 'parley-run'],
  ['Who, what, and what prevents it', 'who-what-and-what-prevents-it'],
  ['FILES_GONE', 'files_gone'],
  ['A [link](page.md) here', 'a-link-here'],
])('the anchor of the heading "%s" is %s', (heading, anchor) => {
  expect(anchorOf(heading)).toBe(anchor);
});
