// The files of a run's folder, one after the other, for an archive: without its home, and without what a link leads to. An agent may be
// at work in it: what is gone or has become something else by the time it is opened is left out.
import { constants } from 'node:fs';
import { lstat, open, readdir, realpath, type FileHandle } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import type { TarEntry } from './tar.js';

export async function* listForArchive(folder: string, home: string, name: string): AsyncGenerator<TarEntry, void> {
  const root = await realpath(folder).catch(() => null);
  if (root === null) return;
  const shut = join(root, relative(folder, home));
  for await (const path of walk(root, shut)) {
    const file = await openInPlace(path);
    if (!file) continue;
    try {
      const { size, mtimeMs } = await file.stat();
      yield { path: `${name}/${relative(root, path).replaceAll(sep, '/')}`, bytes: size, modifiedMs: mtimeMs, content: size === 0 ? nothing() : file.createReadStream({ start: 0, end: size - 1, autoClose: false }) };
    } finally {
      await file.close();
    }
  }
}

async function* nothing(): AsyncGenerator<Uint8Array, void> {}

async function* walk(folder: string, shut: string): AsyncGenerator<string, void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (path === shut) continue;
    // A link is neither.
    if (entry.isDirectory()) yield* walk(path, shut);
    else if (entry.isFile()) yield path;
  }
}

// Open, and still the file of that name at that place: no part of the way to it has become a link since.
async function openInPlace(path: string): Promise<FileHandle | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
  if (!file) return null;
  const [opened, real, named] = await Promise.all([file.stat(), realpath(path).catch(() => null), lstat(path).catch(() => null)]);
  if (opened.isFile() && real === path && named?.ino === opened.ino && named.dev === opened.dev) return file;
  await file.close();
  return null;
}
