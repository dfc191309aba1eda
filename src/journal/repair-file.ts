// Makes a file match the store, page by page, because it may be larger than the memory. Rewrites the file only if it
// differs. Readers see a complete file at any time, even while several writers repair it.
import { renameSync } from 'node:fs';
import { rm, type FileHandle } from 'node:fs/promises';
import type { Lines } from '../store/store.js';
import { openFile, openToAppend, UnsafeFileError } from '../files/read-file.js';
import { nameBeside } from '../files/replace-file.js';

// Returns the stored lines after a sequence number; null if there are none.
export type ReadPage = (afterSeq: number) => Promise<Lines | null>;

export async function repairFile(path: string, read: ReadPage): Promise<void> {
  // Checked again after a rewrite, because lines may have been appended to the old file in the meantime.
  while (!(await isWhole(path, read))) {
    const beside = nameBeside(path);
    try {
      await rewrite(path, beside, read);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
  }
}

async function isWhole(path: string, read: ReadPage): Promise<boolean> {
  const file = await openOrNull(path);
  if (!file) return false;
  try {
    let seq = 0;
    let at = 0;
    let endSeen = -1;
    for (;;) {
      const page = await read(seq);
      if (page !== null) {
        const { length } = page.bytes;
        const actual = Buffer.alloc(length);
        if ((await file.read(actual, 0, length, at)).bytesRead < length || !actual.equals(page.bytes)) return false;
        seq = page.lastSeq;
        at += length;
        continue;
      }
      const { size } = await file.stat();
      if (size <= at) return size === at;
      // The file is longer than the journal was. Lines appended since the last read are in the store as well, so read
      // again. Bytes that follow the end of the journal a second time were never stored.
      if (endSeen === at) return false;
      endSeen = at;
    }
  } finally {
    await file.close();
  }
}

// Resolves to null if there is no file, or something else in its place.
function openOrNull(path: string): Promise<FileHandle | null> {
  return openFile(path).catch((error: unknown) => {
    if (error instanceof UnsafeFileError) return null;
    throw error;
  });
}

// A folder in the place of the file would make the rename fail.
async function removeUnlessFile(path: string): Promise<void> {
  const isUnsafe = await openFile(path).then(
    (file) => file?.close(),
    (error: unknown) => error instanceof UnsafeFileError,
  );
  if (isUnsafe === true) await rm(path, { recursive: true, force: true });
}

async function rewrite(path: string, beside: string, read: ReadPage): Promise<void> {
  const file = await openToAppend(beside);
  try {
    const seq = await copyLines(file, read, 0);
    await removeUnlessFile(path);
    await copyLines(file, read, seq);
    // In the same tick as the last read: no line is appended to the old file in between.
    renameSync(beside, path);
  } finally {
    await file.close();
  }
}

// Returns the sequence number of the last line.
async function copyLines(file: FileHandle, read: ReadPage, afterSeq: number): Promise<number> {
  for (let seq = afterSeq; ;) {
    const page = await read(seq);
    if (page === null) return seq;
    await file.writeFile(page.bytes);
    seq = page.lastSeq;
  }
}
