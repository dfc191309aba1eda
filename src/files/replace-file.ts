// Replaces a file atomically, also when the power fails, and with permissions for its owner only. On return the new
// content is durable. With `forGood: false` a power failure may bring the old content back.
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fdatasyncSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { listNames } from './copy-tree.js';

const FOLDER = { recursive: true, mode: 0o700 };
const PRIVATE = 0o600;
// Error codes of file systems without hard links.
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);
const UNFINISHED = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.new$/;
// Windows cannot open a folder for syncing and does not need it.
const canSyncFolders = process.platform !== 'win32';

export function replaceFile(path: string, content: string | Uint8Array, { forGood = true } = {}): void {
  writeBeside(path, content, (beside) => renameSync(beside, path));
  if (forGood && canSyncFolders) syncFolder(dirname(path));
}

// Creates a file. If it exists already, leaves it unchanged; if several processes create it at once, the first one
// wins.
export function createFile(path: string, content: string | Uint8Array): void {
  writeBeside(path, content, (beside) => {
    try {
      linkSync(beside, path);
      rmSync(beside, { force: true });
    } catch (error) {
      const { code = '' } = error as NodeJS.ErrnoException;
      if (code === 'EEXIST') rmSync(beside, { force: true });
      else if (NO_LINKS.has(code)) renameSync(beside, path);
      else throw error;
    }
  });
  if (canSyncFolders) syncFolder(dirname(path));
}

function writeBeside(path: string, content: string | Uint8Array, publish: (beside: string) => void): void {
  mkdirSync(dirname(path), FOLDER);
  const beside = nameBeside(path);
  try {
    const file = openSync(beside, 'wx', PRIVATE);
    try {
      writeFileSync(file, content);
      // Synced before it gets its name. Otherwise the name could survive a power failure without the content.
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
    publish(beside);
  } catch (error) {
    rmSync(beside, { force: true });
    throw error;
  }
}

// Asynchronous, because the disk may be slow. Calls `check` right before the replacement; if it throws, the file is not
// replaced.
export async function replaceFileMeanwhile(
  path: string,
  content: string | Uint8Array,
  check: () => void = () => {},
): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, FOLDER);
  const beside = nameBeside(path);
  try {
    const file = await open(beside, 'wx', PRIVATE);
    try {
      await file.writeFile(content);
      await file.datasync();
    } finally {
      await file.close();
    }
    check();
    await rename(beside, path);
  } catch (error) {
    await rm(beside, { force: true });
    throw error;
  }
  if (canSyncFolders) await syncFolderMeanwhile(folder);
}

// A different name each time, because several processes may replace the same file at once.
export function nameBeside(path: string): string {
  return `${path}.${randomUUID()}.new`;
}

// Removes temporary files of processes that were killed while they replaced this file. Call it only while no other
// process can be replacing it.
export function removeUnfinished(path: string): void {
  const folder = dirname(path);
  for (const name of listNames(folder))
    if (name.startsWith(`${basename(path)}.`) && UNFINISHED.test(name)) rmSync(join(folder, name), { force: true });
}

// Ignores the errors of network file systems that cannot sync. Durability is then up to that file system.
function unlessUnknown(error: unknown): void {
  if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

// Makes the names in the folder durable.
function syncFolder(path: string): void {
  const folder = openSync(path, 'r');
  try {
    fsyncSync(folder);
  } catch (error) {
    unlessUnknown(error);
  } finally {
    closeSync(folder);
  }
}

async function syncFolderMeanwhile(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync().catch(unlessUnknown);
  } finally {
    await folder.close();
  }
}
