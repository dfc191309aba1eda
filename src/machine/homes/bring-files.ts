// Links or copies files of the user into a private home. Existing files stay unchanged.
import { existsSync, lstatSync, mkdirSync, realpathSync, statSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { copyTree, listNames } from '../../files/copy-tree.js';
import type { Brought } from '../../engines/engine.js';

// Links to the target file, even if the user's own path is a link.
export function linkFiles(files: readonly Brought[], home: string): void {
  bring(files, home, (from, to) => symlinkSync(realpathSync(from), to));
}

export function copyFiles(files: readonly Brought[], home: string): void {
  bring(files.flatMap(listFiles), home, copyTree);
}

// A dangling link also counts as an existing file.
function bring(files: readonly Brought[], home: string, put: (from: string, to: string) => void): void {
  for (const { from, to } of files) {
    const path = join(home, to);
    if (!existsSync(from) || lstatSync(path, { throwIfNoEntry: false })) continue;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    put(from, path);
  }
}

// Expands a folder with a name filter to the matching files.
function listFiles({ from, to, only }: Brought): Brought[] {
  if (!only) return [{ from, to }];
  const names = listNames(from).filter((name) => only.test(name));
  return names
    .map((name) => ({ from: join(from, name), to: join(to, name) }))
    .filter((file) => existsSync(file.from) && statSync(file.from).isFile());
}
