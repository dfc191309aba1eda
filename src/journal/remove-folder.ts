// Removes a folder with everything in it, including folders without write permission, which agents leave behind (Go's
// module cache, for example).
import { randomUUID } from 'node:crypto';
import { chmod, lstat, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { listFolder } from '../files/list-folder.js';

// Retries, because another host may be removing the same folder.
const OPTIONS = { recursive: true, force: true, maxRetries: 3 } as const;
// The system accepts paths of up to 4,096 bytes. An agent can nest folders deeper than that step by step; such folders
// are moved up before they are removed.
const LONG_PATH_BYTES = 2000;

export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS);
  } catch {
    await openUp(path, path);
    await rm(path, OPTIONS);
  }
}

// After its first failure rm still removes other folders, so a missing folder needs no more work.
async function openUp(path: string, top: string): Promise<void> {
  try {
    await openFolder(path, top);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  }
}

// Changes only folders: a file is removed with its folder. Links are not followed.
async function openFolder(path: string, top: string): Promise<void> {
  if (!(await lstat(path).catch(() => null))?.isDirectory()) return;
  await chmod(path, 0o700);
  const near =
    path !== top && Buffer.byteLength(path) - Buffer.byteLength(top) > LONG_PATH_BYTES ? join(top, randomUUID()) : path;
  if (near !== path) await rename(path, near);
  for await (const entries of listFolder(near, 1000))
    for (const { name, kind } of entries) if (kind !== 'file') await openUp(join(near, name.toString()), top);
}
