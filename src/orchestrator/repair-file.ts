// Makes a file what is stored, page by page: it may be larger than the memory. It is rewritten only where it differs, and is
// whole at every moment, also if several do it at once: whoever was last has looked after that.
import { closeSync, existsSync, fstatSync, openSync, readSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { nameBeside } from '../files/replace-file.js';

// `pages` gives what is stored, from the beginning each time it is asked.
export async function repairFile(path: string, pages: () => AsyncIterable<Buffer>): Promise<void> {
  // Until nothing came in between reading and writing.
  while (!(await isWhole(path, pages()))) {
    const beside = nameBeside(path);
    try {
      await write(beside, pages());
      renameSync(beside, path);
    } catch (error) {
      rmSync(beside, { force: true });
      throw error;
    }
  }
}

async function isWhole(path: string, pages: AsyncIterable<Buffer>): Promise<boolean> {
  if (!existsSync(path)) return false;
  const file = openSync(path, 'r');
  try {
    let at = 0;
    for await (const page of pages) {
      const found = Buffer.alloc(page.length);
      if (readSync(file, found, 0, page.length, at) < page.length || !found.equals(page)) return false;
      at += page.length;
    }
    return fstatSync(file).size === at;
  } finally {
    closeSync(file);
  }
}

async function write(path: string, pages: AsyncIterable<Buffer>): Promise<void> {
  const file = openSync(path, 'w', 0o600);
  try {
    for await (const page of pages) writeFileSync(file, page);
  } finally {
    closeSync(file);
  }
}
