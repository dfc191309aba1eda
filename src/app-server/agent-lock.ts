// Lets one process at a time use an instance. The operating system releases the lock when the process dies; a file
// beside it names the owner for messages only. An owner that has lost the instance without noticing can be bypassed:
// the lock file is replaced, so the lock that this owner still holds has no effect.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readTextSync, SMALL_FILE } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import { AppServerError } from './app-server-error.js';
import { isHeldHere, tryLock } from '../machine/homes/file-lock.js';

// Returns the function that releases the lock. `pass` is called before an owner is bypassed; without it, no owner is
// bypassed.
export async function lockAgent(folder: string, pid: number, pass?: () => Promise<void>): Promise<() => void> {
  const note = join(folder, 'owner');
  const path = join(folder, 'lock.db');
  let unlock = await tryLock(path);
  if (!unlock && pass && !isHeldHere(path)) {
    await pass();
    for (const ending of ['', '-journal', '-wal', '-shm']) rmSync(path + ending, { force: true });
    unlock = await tryLock(path);
  }
  if (!unlock) throw new AppServerError('in_use', `${folder} is in use by ${readOwner(note)}`);
  const free = unlock;
  let isHeld = true;
  // Removes the note only once and only if it is ours: another process may own the instance by then.
  const release = (): void => {
    if (isHeld && readOwner(note) === `process ${pid}`) rmSync(note, { force: true });
    isHeld = false;
    free();
  };
  try {
    replaceFile(note, `${pid}\n`);
    return release;
  } catch (error) {
    free();
    throw error;
  }
}

// The note may be missing: the owner writes it after it has the lock and removes it before it releases it.
function readOwner(note: string): string {
  const pid = readTextSync(note, SMALL_FILE)?.trim() ?? '';
  return /^\d+$/.test(pid) ? `process ${pid}` : 'another process';
}
