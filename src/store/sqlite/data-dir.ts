// A data directory on this machine: made if missing, readable by its owner only, written by one process at a time.
// The writer holds an exclusive lock in a small database of its own, so it is free again when the process is gone.
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RequestError } from '../../run/request-error.js';
import type { Store } from '../store.js';
import { checkVersion, migrate } from './migrate.js';
import { makeDurable, openDatabase, openLock, type Database } from './open-database.js';
import { SqliteStore } from './sqlite-store.js';

export interface DataDir {
  readonly path: string;
  readonly store: Store;
  close(): Promise<void>;
}

export async function openDataDir(path: string, owner: { readonly pid: number }): Promise<DataDir> {
  return usable(path, async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = await lockDataDir(path, owner);
    try {
      const store = await openStore(join(path, 'parley.db'));
      return {
        path,
        store,
        close: async () => {
          await store.close();
          lock.close();
        },
      };
    } catch (error) {
      lock.close();
      throw error;
    }
  });
}

async function openStore(path: string): Promise<Store> {
  const db = await openDatabase(privateFile(path));
  try {
    // First of all: a file of a later version is not touched.
    checkVersion(db);
    makeDurable(db);
    migrate(db);
    return new SqliteStore(db);
  } catch (error) {
    db.close();
    throw error;
  }
}

async function lockDataDir(path: string, owner: { readonly pid: number }): Promise<Database> {
  const note = join(path, 'writer.pid');
  const lock = await openLock(privateFile(join(path, 'lock.db')));
  try {
    lock.exec('BEGIN EXCLUSIVE');
    // Only for the message below: the lock itself is what counts.
    writeFileSync(note, String(owner.pid), { mode: 0o600 });
    return lock;
  } catch (error) {
    lock.close();
    if (!isBusy(error)) throw error;
    throw new RequestError('DATA_DIR_IN_USE', `the data directory ${path} is in use by process ${readNote(note)}`);
  }
}

// Made before SQLite opens it: the files that SQLite puts beside it get the same mode. One that is there is not opened here:
// closing it again would drop every lock that this process has on it.
function privateFile(path: string): string {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return path;
}

function readNote(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '(unknown)';
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message);
}

// What the system or SQLite refuses becomes one error with a code; it tells the path.
async function usable<T>(path: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw new RequestError('DATA_DIR_UNUSABLE', `the data directory ${path} cannot be used: ${error instanceof Error ? error.message : String(error)}`);
  }
}
