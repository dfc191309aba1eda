// The code blocks of README.md and docs/guides: shell blocks run, TypeScript compiles against the built package, JSON
// parses and settings match their schema. tests/docs/page.ts explains the comments that blocks may have.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, expect, test } from 'vitest';
import { canRun, isShell, readBlocks, ROOT, runPage, type CodeBlock } from './page.js';

// Raise this only for a block that no test can run, such as one that needs a login or another machine.
const MOST_MARKED = 11;

// Translations have the same blocks (translations.test.ts).
const GUIDES = readdirSync(join(ROOT, 'docs/guides'))
  .filter((name) => !name.endsWith('.zh-CN.md'))
  .map((name) => `docs/guides/${name}`);
const PAGES = ['README.md', ...GUIDES].map((page) => ({ page, blocks: readBlocks(page) }));
// tests/postgres/guide.test.ts runs this page, on a database of its own.
const ON_POSTGRES = 'docs/guides/several-hosts.md';
const CHECKED = new Set(['sh', 'bash', 'console', 'ts', 'js', 'json']);

const all = PAGES.flatMap(({ blocks }) => blocks).filter(({ language }) => CHECKED.has(language));
const marked = all.filter(({ notes }) => notes.has('not run'));
const absent = all.filter((block) => !marked.includes(block) && !canRun(block));

afterAll(() => {
  const ran = all.length - marked.length - absent.length;
  console.log(
    `code blocks: ${ran} checked, ${marked.length} marked as not run, ${absent.length} without their program`,
  );
});

test('few blocks are marked as not run, each with a reason', () => {
  for (const { place, notes } of marked) expect(notes.get('not run'), place).toMatch(/\w/);
  expect(marked.length).toBeLessThanOrEqual(MOST_MARKED);
});

const runnable = PAGES.filter(({ page }) => page !== ON_POSTGRES)
  .map(({ page, blocks }) => ({ page, blocks: blocks.filter(canRun) }))
  .filter(({ blocks }) => blocks.some(isShell));

test.concurrent.for(runnable)(
  '$page: its commands run and print what the page shows',
  { timeout: 300_000 },
  async ({ blocks }) => {
    const differences = await runPage(blocks);
    // An assertion would shorten the text in the summary of CI.
    if (differences.length > 0) throw new Error(differences.join('\n\n'));
  },
);

const run = (language: string, text: string): Promise<string[]> =>
  runPage([{ place: 'page:1', language, text, notes: new Map() }]);

test('a command that fails, prints something else or is never reached is reported', async () => {
  expect(await run('console', '$ echo one; echo two\n…\ntwo\n$ (exit 3)\n$ (exit 4) # exit code 4')).toEqual([]);
  expect(await run('console', '$ echo one\ntwo')).toEqual([expect.stringMatching(/^page:1: .*shows\ntwo\n.*\none$/s)]);
  expect(await run('console', '$ (exit 1)')).toEqual([expect.stringContaining('ended with code 1, not with 0 or 3')]);
  expect(await run('sh', 'false\necho unreachable')).toEqual([expect.stringContaining('ended with code 1')]);
  expect(await run('console', '$ exit 0\n$ true')).toEqual([expect.stringContaining('did not get to: exit 0')]);
});

test('JSON blocks parse, and settings match their schema', () => {
  const schema = JSON.parse(readFileSync(join(ROOT, 'contract/config.schema.json'), 'utf8')) as object;
  const matches = new Ajv2020({ strict: false, validateFormats: false }).compile(schema);
  for (const { place, text, notes } of all.filter(({ language }) => language === 'json')) {
    const value = parse(text, place);
    if (notes.get('file')?.endsWith('config.json')) expect(matches(value), `${place} ${text}`).toBe(true);
  }
});

function parse(text: string, place: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${place} is not JSON`, { cause: error });
  }
}

test('TypeScript and JavaScript blocks compile against the built package', () => {
  const folder = mkdtempSync(join(tmpdir(), 'parley-blocks-'));
  try {
    const blocks = all.filter(({ language }) => ['ts', 'js'].includes(language)).filter(canRun);
    expect(blocks).not.toEqual([]);
    mkdirSync(join(folder, 'node_modules/@types'), { recursive: true });
    symlinkSync(ROOT, join(folder, 'node_modules/parley-agents'));
    symlinkSync(join(ROOT, 'node_modules/@types/node'), join(folder, 'node_modules/@types/node'));
    for (const block of blocks) writeFileSync(join(folder, fileNameOf(block)), `${block.text}\nexport {};\n`);
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: COMPILER_OPTIONS }));
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    expect(typeErrorsIn(folder)).toBe('');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const COMPILER_OPTIONS = {
  target: 'ES2023',
  module: 'NodeNext',
  types: ['node'],
  strict: true,
  noImplicitAny: false,
  skipLibCheck: true,
  allowJs: true,
  checkJs: true,
  noEmit: true,
};

const fileNameOf = ({ place, language }: CodeBlock): string => `${place.replace(/\W+/g, '-')}.${language}`;

function typeErrorsIn(folder: string): string {
  try {
    execFileSync(process.execPath, [join(ROOT, 'node_modules/typescript/bin/tsc'), '-p', folder], { stdio: 'pipe' });
    return '';
  } catch (error) {
    return String((error as { stdout?: Buffer }).stdout);
  }
}
