// Makes a file what is stored, page by page: it may be larger than the memory. It is rewritten only where it differs,
// and is whole at every moment, also if several do it at once: whoever was last has looked after that.
import { rename, rm, type FileHandle } from 'node:fs/promises';
import { openFile, openToAppend, UnsafeFileError } from '../files/read-file.js';
import { nameBeside } from '../files/replace-file.js';

// `pages` gives what is stored, from the beginning each time it is asked.
export async function repairFile(path: string, pages: () => AsyncIterable<Buffer>): Promise<void> {
  // Until nothing came in between reading and writing.
  while (!(await isWhole(path, pages()))) {
    const beside = nameBeside(path);
    try {
      await write(beside, pages());
      await removeUnlessFile(path);
      await rename(beside, path);
    } catch (error) {
      await rm(beside, { force: true });
      throw error;
    }
  }
}

async function isWhole(path: string, pages: AsyncIterable<Buffer>): Promise<boolean> {
  const file = await openOrNull(path);
  if (!file) return false;
  try {
    let at = 0;
    for await (const page of pages) {
      const found = Buffer.alloc(page.length);
      if ((await file.read(found, 0, page.length, at)).bytesRead < page.length || !found.equals(page)) return false;
      at += page.length;
    }
    return (await file.stat()).size === at;
  } finally {
    await file.close();
  }
}

// What is not a regular file is replaced by one.
function openOrNull(path: string): Promise<FileHandle | null> {
  return openFile(path).catch((error: unknown) => {
    if (error instanceof UnsafeFileError) return null;
    throw error;
  });
}

// A folder in the place of the file would refuse the new one.
async function removeUnlessFile(path: string): Promise<void> {
  const isUnsafe = await openFile(path).then(
    (file) => file?.close(),
    (error: unknown) => error instanceof UnsafeFileError,
  );
  if (isUnsafe === true) await rm(path, { recursive: true, force: true });
}

async function write(path: string, pages: AsyncIterable<Buffer>): Promise<void> {
  const file = await openToAppend(path);
  try {
    for await (const page of pages) await file.writeFile(page);
  } finally {
    await file.close();
  }
}
