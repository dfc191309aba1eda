// Who has an instance: one process at a time, by a lock that is free when it dies. A file beside it only says whose it
// is. A holder that has lost the instance, and does not know it yet, can be passed over: the lock is then another file,
// and its own is nowhere.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { readTextSync, SMALL_FILE } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import { AppServerError } from './app-server-error.js';
import { isHeldHere, tryLock } from './file-lock.js';

// Answers how to give it back. `pass` is called before a holder is passed over; without it none is.
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
  // Once: afterwards it may be another's, and so it may be now, if this one was passed over.
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

// It may not have said so yet, or not any more.
function readOwner(note: string): string {
  const pid = readTextSync(note, SMALL_FILE)?.trim() ?? '';
  return /^\d+$/.test(pid) ? `process ${pid}` : 'another process';
}
