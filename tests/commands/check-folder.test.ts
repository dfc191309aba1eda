// The working directory of a new run: resolved once, within the roots, and never in the data directory.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { checkFolder, checkRoots, type FolderRules } from '../../src/commands/check-folder.js';
import type { RunRecord } from '../../src/store/store.js';
import { refusal } from '../support/command-bench.js';

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-folder-')));
  for (const name of ['data/runs', 'work/deep', 'workshop', 'other']) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, 'work/file'), '');
});
afterEach(() => rmSync(root, { recursive: true }));

const at = (...names: string[]): string => join(root, ...names);

function check(path: string, rules: Partial<FolderRules> = {}): string {
  return checkFolder(path, {
    roots: null,
    dataDir: at('data'),
    permission: 'workspace-write',
    beside: undefined,
    ...rules,
  });
}

function runIn(cwd: string): RunRecord {
  return { run_id: 'run_1', spec: { cwd } } as RunRecord;
}

test('a folder is accepted, and the path without links is returned', () => {
  symlinkSync(at('work'), at('link'));
  expect(check(at('work'))).toBe(at('work'));
  expect(check(at('link/deep'))).toBe(at('work/deep'));
  expect(check(`${at('work')}/deep/..`)).toBe(at('work'));
});

test.each(['', 'work', './work', '../work', '~/work'])('the relative path %j is refused', async (path) => {
  expect(await refusal(() => check(path), 'INVALID_ARGUMENT')).toBe(
    `cwd cannot be ${JSON.stringify(path)}: it takes an absolute path.`,
  );
});

test('a path with a NUL character is refused, before the file system or the roots are consulted', async () => {
  const message = await refusal(() => check(`${at('work')}\0`, { roots: [] }), 'INVALID_ARGUMENT');
  expect(message).toContain('NUL');
});

test('a missing folder, a dangling link and a path that is too long do not exist', async () => {
  symlinkSync(at('nowhere'), at('dangling'));
  expect(await refusal(() => check(at('nowhere')), 'INVALID_ARGUMENT')).toBe(`cwd ${at('nowhere')} does not exist.`);
  expect(await refusal(() => check(at('dangling')), 'INVALID_ARGUMENT')).toContain('does not exist');
  const long = await refusal(() => check(at('x'.repeat(5000))), 'INVALID_ARGUMENT');
  expect(long).toContain('does not exist');
  expect(long.length).toBeLessThan(400);
});

test('a file is refused, also through a link', async () => {
  symlinkSync(at('work/file'), at('to-file'));
  for (const path of [at('work/file'), at('to-file')])
    expect(await refusal(() => check(path), 'INVALID_ARGUMENT')).toBe(`cwd ${path} is not a directory.`);
});

test('with roots, only a root and folders below it are accepted', async () => {
  const roots = [at('other'), at('work')];
  expect(check(at('work'), { roots })).toBe(at('work'));
  expect(check(at('work/deep'), { roots })).toBe(at('work/deep'));
  for (const path of [at('workshop'), root, at('work/../workshop')])
    expect(await refusal(() => check(path, { roots }), 'PATH_NOT_ALLOWED')).toContain(roots.join(', '));
});

test('a link out of the roots is refused; a link into them is accepted', async () => {
  symlinkSync(at('other'), at('work/out'));
  symlinkSync(at('work/deep'), at('other/in'));
  await refusal(() => check(at('work/out'), { roots: [at('work')] }), 'PATH_NOT_ALLOWED');
  expect(check(at('other/in'), { roots: [at('work')] })).toBe(at('work/deep'));
});

test('a root may itself be a link; a missing root allows nothing', async () => {
  symlinkSync(at('work'), at('root-link'));
  expect(check(at('work/deep'), { roots: [at('root-link')] })).toBe(at('work/deep'));
  await refusal(() => check(at('work'), { roots: [at('missing')] }), 'PATH_NOT_ALLOWED');
});

test('an empty list of roots allows no folder', async () => {
  expect(await refusal(() => check(at('work'), { roots: [] }), 'PATH_NOT_ALLOWED')).toContain('none are configured');
});

test('outside the roots the refusal does not reveal whether a path exists', async () => {
  const roots = [at('work')];
  for (const path of [at('other'), at('missing'), at('workshop/missing')])
    expect(await refusal(() => check(path, { roots }), 'PATH_NOT_ALLOWED')).toBe(
      `${path} is not within the folders where runs may work: ${at('work')}. Allow more folders with workspace_roots ` +
        'in config.json.',
    );
  expect(await refusal(() => check(at('work/missing'), { roots }), 'INVALID_ARGUMENT')).toContain('does not exist');
});

test.each(['read-only', 'workspace-write', 'full'] as const)(
  'the data directory and its folders are refused with the permission %s, also through a link',
  async (permission) => {
    symlinkSync(at('data/runs'), at('work/to-data'));
    for (const path of [at('data'), at('data/runs'), at('work/to-data')])
      expect(await refusal(() => check(path, { permission }), 'PATH_NOT_ALLOWED')).toContain('is in Parley');
  },
);

test('a folder that contains the data directory is accepted only with the permission full', async () => {
  for (const permission of ['read-only', 'workspace-write'] as const)
    expect(await refusal(() => check(root, { permission }), 'PATH_NOT_ALLOWED')).toContain('contains Parley');
  expect(check(root, { permission: 'full' })).toBe(root);
});

test('a retry works in the folder of the first run, also if that is in the data directory', () => {
  expect(check(at('work'), { beside: runIn(at('work')) })).toBe(at('work'));
  expect(check(at('data/runs'), { beside: runIn(at('data/runs')) })).toBe(at('data/runs'));
});

test('a retry is refused if the path is missing, outside the roots or now another folder', async () => {
  const beside = runIn(at('moved'));
  symlinkSync(at('other'), at('moved'));
  const message = await refusal(() => check(at('moved'), { beside }), 'INVALID_ARGUMENT');
  expect(message).toContain(`(${at('moved')}) now resolves to ${at('other')}`);
  await refusal(() => check(at('gone'), { beside: runIn(at('gone')) }), 'INVALID_ARGUMENT');
  await refusal(() => check(at('work'), { beside: runIn(at('work')), roots: [at('other')] }), 'PATH_NOT_ALLOWED');
});

test('checkRoots compares the resolved path, and names the path of the caller', async () => {
  checkRoots('/shown', at('work'), [at('work')]);
  expect(await refusal(() => checkRoots('/shown', at('other'), [at('work')]), 'PATH_NOT_ALLOWED')).toMatch(/^\/shown /);
});
