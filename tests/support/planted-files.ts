// Objects that an agent or a repository may put in place of a file: every reader must refuse each at once.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { mkdirSync, renameSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { onTestFinished } from 'vitest';

export const PLANTS: readonly (readonly [string, (path: string) => Promise<void> | void])[] = [
  ['a pipe', (path) => void execFileSync('mkfifo', [path])],
  [
    'a socket',
    (path) =>
      new Promise((resolve) => {
        const server = createServer().listen(path, resolve);
        onTestFinished(() => void server.close());
      }),
  ],
  ['a link to /dev/zero', (path) => symlinkSync('/dev/zero', path)],
  [
    'a link to a file',
    (path) => {
      writeFileSync(`${path}.elsewhere`, 'elsewhere');
      symlinkSync(`${path}.elsewhere`, path);
    },
  ],
  ['a link that leads to itself', (path) => symlinkSync(path, path)],
  ['a folder', (path) => mkdirSync(path)],
  [
    'a sparse file of a terabyte',
    (path) => {
      writeFileSync(path, '');
      truncateSync(path, 2 ** 40);
    },
  ],
];

// Removes the existing file first.
export async function plant(path: string, put: (path: string) => Promise<void> | void): Promise<void> {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(dirname(path), { recursive: true });
  await put(path);
}

// The folder of the file becomes a link to the place where it was moved.
export function linkFolder(path: string): void {
  const folder = dirname(path);
  renameSync(folder, `${folder}.moved`);
  symlinkSync(`${folder}.moved`, folder);
}

// A file that another process keeps extending. Returns a function that ends the process: it would create the file again
// after the folder was removed.
// file again after the folder was removed.
export function growing(path: string): () => Promise<void> {
  writeFileSync(path, 'x'.repeat(1000));
  const child = spawn('/bin/sh', ['-c', `while :; do printf yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy >> '${path}'; done`], {
    stdio: 'ignore',
  });
  const exited = once(child, 'exit');
  return async () => {
    child.kill('SIGKILL');
    await exited;
  };
}
