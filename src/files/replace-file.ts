// Replaces a file: whole or not at all, also when the power fails, and for nobody else to read. Afterwards it is the
// new one for good, unless the old one would do as well after a power cut.
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
// Of file systems without hard links.
const NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS']);
const UNFINISHED = /\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.new$/;
// Elsewhere a folder cannot be opened, nor need it be.
const canSyncFolders = process.platform !== 'win32';

export function replaceFile(path: string, content: string | Uint8Array, { forGood = true } = {}): void {
  writeBeside(path, content, (beside) => renameSync(beside, path));
  if (forGood && canSyncFolders) syncFolder(dirname(path));
}

// Makes a file that does not exist yet; of several processes that do it at once, the first one wins. One that exists is
// left as it is.
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
      // On the disk before it has its name: else the name may outlive a power cut, and what should be in it not.
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

// The same, while others go on: the disk may take its time.
// `check` is asked in the last moment, and may throw.
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

// Another one each time: several processes may replace the same file at once.
export function nameBeside(path: string): string {
  return `${path}.${randomUUID()}.new`;
}

// What a process that was killed meanwhile has left of this file: only where nobody else can be at it.
export function removeUnfinished(path: string): void {
  const folder = dirname(path);
  for (const name of listNames(folder))
    if (name.startsWith(`${basename(path)}.`) && UNFINISHED.test(name)) rmSync(join(folder, name), { force: true });
}

// Some file systems that are mounted from elsewhere cannot do it: what is written there is theirs to keep.
function unlessUnknown(error: unknown): void {
  if (!['EINVAL', 'ENOTSUP'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
}

// The names in it are on the disk then.
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
