// Removes a folder with everything in it, also what its owner may not write to: agents leave such folders behind (the
// module cache of Go, for one).
import { randomUUID } from 'node:crypto';
import { chmod, lstat, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { listFolder } from '../files/list-folder.js';

// Another host may be removing it, too.
const OPTIONS = { recursive: true, force: true, maxRetries: 3 } as const;
// The system takes 4,096 bytes for a path. What an agent has nested deeper, step by step, can only be reached after it
// was brought up.
const LONG_PATH_BYTES = 2000;

export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS);
  } catch {
    await openUp(path, path);
    await rm(path, OPTIONS);
  }
}

// After its first failure rm still removes other folders: one that is gone needs no more.
async function openUp(path: string, top: string): Promise<void> {
  try {
    await openFolder(path, top);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

// Only folders: a file goes with the folder it is in. Links are left alone.
async function openFolder(path: string, top: string): Promise<void> {
  if (!(await lstat(path).catch(() => null))?.isDirectory()) return;
  await chmod(path, 0o700);
  const near =
    path !== top && Buffer.byteLength(path) - Buffer.byteLength(top) > LONG_PATH_BYTES ? join(top, randomUUID()) : path;
  if (near !== path) await rename(path, near);
  for await (const entries of listFolder(near, 1000))
    for (const { name, kind } of entries) if (kind !== 'file') await openUp(join(near, name.toString()), top);
}
