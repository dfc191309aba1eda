// The files of a run's folder, one after the other, for an archive.
import { realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { openInPlace, walkFiles } from './files-of-run.js';
import type { TarEntry } from './tar.js';

export async function* listForArchive(folder: string, home: string, name: string): AsyncGenerator<TarEntry, void> {
  const root = await realpath(folder).catch(() => null);
  if (root === null) return;
  for await (const path of walkFiles(root, join(root, relative(folder, home)))) {
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
