// Who has an instance: one process at a time, by a lock that is free when it dies. A file beside it only says whose it is.
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../files/replace-file.js';
import { AppServerError } from './app-server-error.js';
import { tryLock } from './file-lock.js';

// Answers how to give it back.
export async function lockAgent(folder: string, pid: number): Promise<() => void> {
  const note = join(folder, 'owner');
  const unlock = await tryLock(join(folder, 'lock.db'));
  if (!unlock) throw new AppServerError('in_use', `${folder} is in use by ${readOwner(note)}`);
  let isHeld = true;
  // Once: afterwards it may be another's.
  const release = (): void => {
    if (isHeld) rmSync(note, { force: true });
    isHeld = false;
    unlock();
  };
  try {
    replaceFile(note, `${pid}\n`);
    return release;
  } catch (error) {
    unlock();
    throw error;
  }
}

// It may not have said so yet, or not any more.
function readOwner(note: string): string {
  try {
    return `process ${readFileSync(note, 'utf8').trim()}`;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return 'another process';
    throw error;
  }
}
