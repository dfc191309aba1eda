// Brings files of the user into a private home: linked, or copied. What is there already stays.
import { existsSync, lstatSync, mkdirSync, realpathSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { copyTree, listNames } from '../files/copy-tree.js';
import type { Brought } from './engine.js';

// The link leads to the file itself, also when the user has a link there.
export function linkFiles(files: readonly Brought[], home: string): void {
  bring(files, home, (from, to) => symlinkSync(realpathSync(from), to));
}

export function copyFiles(files: readonly Brought[], home: string): void {
  bring(files.flatMap(listFiles), home, copyTree);
}

// It counts as there even if it is a link that leads nowhere.
function bring(files: readonly Brought[], home: string, put: (from: string, to: string) => void): void {
  for (const { from, to } of files) {
    const path = join(home, to);
    if (!existsSync(from) || lstatSync(path, { throwIfNoEntry: false })) continue;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    put(from, path);
  }
}

// A folder of which only some files are brought is those files.
function listFiles({ from, to, only }: Brought): Brought[] {
  if (!only) return [{ from, to }];
  const names = listNames(from).filter((name) => only.test(name));
  return names
    .map((name) => ({ from: join(from, name), to: join(to, name) }))
    .filter((file) => existsSync(file.from) && statSync(file.from).isFile());
}
