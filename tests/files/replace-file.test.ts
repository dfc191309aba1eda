// Replacing a file: its content is on disk before its name, and its name is on disk before the call returns.
import fs, { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createFile, replaceFile, replaceFileMeanwhile } from '../../src/files/replace-file.js';

let dir: string;
let calls: string[];

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-replace-'));
  calls = [];
  for (const name of ['fdatasyncSync', 'fsyncSync', 'renameSync'] as const) note(fs, name);
  note(fs.promises, 'rename');
  const file = await open(join(dir, 'any'), 'w');
  for (const name of ['datasync', 'sync'] as const) note(Object.getPrototypeOf(file) as typeof file, name);
  await file.close();
  syncBuiltinESMExports();
});
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
  rmSync(dir, { recursive: true });
});

// Works as before, and is recorded.
function note(where: object, name: string): void {
  const real = (where as Record<string, (...args: unknown[]) => unknown>)[name] as (...args: unknown[]) => unknown;
  vi.spyOn(where as Record<string, (...args: unknown[]) => unknown>, name).mockImplementation(function (
    this: unknown,
    ...args: unknown[]
  ) {
    calls.push(name);
    return real.apply(this, args);
  });
}

test.each([
  ['at once', replaceFile, ['fdatasyncSync', 'renameSync', 'fsyncSync']],
  ['while others go on', replaceFileMeanwhile, ['datasync', 'rename', 'sync']],
] as const)('%s: first its content, then its name, then the folder', async (_how, replace, expected) => {
  const path = join(dir, 'folder', 'file.json');
  await replace(path, 'first');
  await replace(path, Buffer.from('second'));
  expect(calls).toEqual([...expected, ...expected]);
  expect(readFileSync(path, 'utf8')).toBe('second');
  expect(readdirSync(join(dir, 'folder'))).toEqual(['file.json']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(statSync(join(dir, 'folder')).mode & 0o777).toBe(0o700);
});

// Needs the build. Hosts that share a directory write the same notes.
test('several processes replace a file at once: each succeeds, the file stays whole, nothing is left', async () => {
  const path = join(dir, 'shared', 'note');
  const moduleUrl = new URL('../../dist/files/replace-file.js', import.meta.url).href;
  const program = `const { replaceFile } = await import(${JSON.stringify(moduleUrl)});
    for (let time = 0; time < 100; time += 1) replaceFile(process.argv[1], process.argv[2].repeat(50_000));`;
  const children = ['a', 'b', 'c'].map((letter) =>
    spawn(process.execPath, ['--input-type=module', '-e', program, path, letter], {
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  );
  expect(await Promise.all(children.map(async (child) => ((await once(child, 'exit')) as [number])[0]))).toEqual([
    0, 0, 0,
  ]);
  expect(readFileSync(path, 'utf8')).toMatch(/^(?:a{50000}|b{50000}|c{50000})$/);
  expect(readdirSync(join(dir, 'shared'))).toEqual(['note']);
});

test('of several that create a file at once the first wins, and it is left as it is', () => {
  const path = join(dir, 'below', 'file');
  for (const text of ['first', 'second']) createFile(path, text);
  expect(readFileSync(path, 'utf8')).toBe('first');
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readdirSync(join(dir, 'below'))).toEqual(['file']);
});
