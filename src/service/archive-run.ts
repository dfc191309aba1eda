// The files of a run's folder, one after the other, for an archive.
import { realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { readPieces } from '../files/read-file.js';
import { openInPlace, walkFiles } from './files-of-run.js';
import type { TarEntry } from './tar.js';

// Names that are not UTF-8 are in the archive as they are, byte for byte.
export async function* listForArchive(folder: string, home: string, name: string): AsyncGenerator<TarEntry, void> {
  const root = await realpath(folder).catch(() => null);
  if (root === null) return;
  for await (const { path, shown, isText } of walkFiles(root, join(root, relative(folder, home)))) {
    const file = await openInPlace(path);
    if (!file) continue;
    try {
      const { size, mtimeMs } = await file.stat();
      const inside = isText ? `${name}/${shown}` : Buffer.concat([Buffer.from(`${name}/`), Buffer.from(path).subarray(Buffer.byteLength(root + sep))]);
      yield { path: inside, bytes: size, modifiedMs: mtimeMs, content: readPieces(file, 0, size) };
    } finally {
      await file.close();
    }
  }
}
