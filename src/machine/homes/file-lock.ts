// An exclusive file lock, between processes and within one process. The operating system releases it when its holder
// exits.
import { closeSync, openSync } from 'node:fs';
import { openLock, type Database } from '../../store/sqlite/open-database.js';

// Keeps references: garbage collection would close an unreferenced lock.
const held = new Map<Database, string>();

// Resolves to a function that releases the lock, or to null if the lock is taken.
export async function tryLock(path: string): Promise<(() => void) | null> {
  makePrivate(path);
  const lock = await openLock(path);
  try {
    // With EXCLUSIVE, both of two concurrent callers could fail.
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

// Whether this process holds the lock.
export function isHeldHere(path: string): boolean {
  return [...held.values()].includes(path);
}

// Does not open an existing file: closing it would drop every lock that this process holds on it.
function makePrivate(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}
