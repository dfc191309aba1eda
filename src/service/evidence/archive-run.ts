// The files of a run's folder, one after another, for an archive. If some could not be read, the last entry lists them.
import { realpath } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { Readable } from 'node:stream';
import { readPieces } from '../../files/read-file.js';
import { openInPlace, walkFiles, type FileOfRun } from './files-of-run.js';
import type { TarEntry } from './tar.js';

// Limits the list: an agent can create any number of unreadable files.
const MOST_NAMED = 1000;

// Names that are not UTF-8 are archived byte for byte.
export async function* listForArchive(folder: string, home: string, name: string): AsyncGenerator<TarEntry, void> {
  const root = await realpath(folder).catch(() => null);
  if (root === null) return;
  const leftOut: string[] = [];
  let more = 0;
  const leaveOut = (shown: string): void => {
    if (leftOut.length < MOST_NAMED) leftOut.push(shown);
    else more += 1;
  };
  const rules = { onUnreadable: ({ shown }: FileOfRun) => leaveOut(`${shown}/`) };
  for await (const { path, shown, isText } of walkFiles(root, join(root, relative(folder, home)), rules)) {
    const file = await openInPlace(path);
    if (!file) {
      leaveOut(shown);
      continue;
    }
    try {
      const { size, mtimeMs } = await file.stat();
      const inside = isText
        ? `${name}/${shown}`
        : Buffer.concat([Buffer.from(`${name}/`), Buffer.from(path).subarray(Buffer.byteLength(root + sep))]);
      yield { path: inside, bytes: size, modifiedMs: mtimeMs, content: readPieces(file, 0, size) };
    } finally {
      await file.close();
    }
  }
  if (leftOut.length > 0) yield listLeftOut(`${name}.left-out.txt`, leftOut, more);
}

// The list is beside the folder, where no file of the run can have its name. One name per line, as JSON, because a name
// may contain a line break.
function listLeftOut(path: string, names: readonly string[], more: number): TarEntry {
  const lines = [
    'These files and folders could not be read and are not in the archive:',
    ...names.map((each) => JSON.stringify(each)),
    ...(more === 0 ? [] : [`and ${more} more`]),
  ];
  const bytes = Buffer.from(`${lines.join('\n')}\n`);
  return { path, bytes: bytes.length, modifiedMs: 0, content: Readable.from([bytes]) };
}
