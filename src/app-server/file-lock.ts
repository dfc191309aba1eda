// A lock that one holds at a time, of all processes and within one. The system keeps it, so it is free again when its
// holder is dead.
import { closeSync, openSync } from 'node:fs';
import { openLock, type Database } from '../store/sqlite/open-database.js';

// Kept here: a lock that nobody refers to would be dropped with the garbage.
const held = new Map<Database, string>();

// Answers how to give it back, or null when another has it.
export async function tryLock(path: string): Promise<(() => void) | null> {
  makePrivate(path);
  const lock = await openLock(path);
  try {
    // Not EXCLUSIVE: of two who come at once, both could fail.
    lock.exec('BEGIN IMMEDIATE');
  } catch (error) {
    lock.close();
    if (error instanceof Error && /locked|busy/i.test(error.message)) return null;
    throw error;
  }
  held.set(lock, path);
  return () => {
    if (held.delete(lock)) lock.close();
  };
}

// By this process itself.
export function isHeldHere(path: string): boolean {
  return [...held.values()].includes(path);
}

// One that is there is not opened here: to close it again would drop every lock that this process has on it.
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
