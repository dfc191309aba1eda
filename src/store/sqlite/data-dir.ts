// A data directory on this machine: made if missing, readable by its owner only, written by one process at a time.
// The writer holds an exclusive lock in a small database of its own, so it is free again when the process is gone.
import { closeSync, existsSync, mkdirSync, openSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { RequestError } from '../../run/request-error.js';
import type { AccessStore } from '../access-store.js';
import type { Store } from '../store.js';
import { SqliteAccess } from './access.js';
import { checkSound, checkTables, tell } from './check-tables.js';
import { explainSqlite, isDamage } from './explain-sqlite.js';
import { checkVersion, migrate, NEWEST_VERSION } from './migrate.js';
import { MIGRATIONS } from './migrations.js';
import { makeDurable, openDatabase, openLock, type Database } from './open-database.js';
import { openReadOnly } from './open-read-only.js';
import { SqliteStore } from './sqlite-store.js';
import { watchFiles } from './watch-files.js';

const NOTE = 'writer.json';
// Kept here: a lock that nobody holds a reference to would be dropped with the garbage, and the directory given to
// another.
const held = new Set<Database>();

export interface DataDir {
  readonly path: string;
  readonly store: Store;
  readonly access: AccessStore;
  close(): Promise<void>;
}

// Who writes to a data directory, for people and for whoever wants to reach that process.
export interface Writer {
  readonly pid: number;
  // Tells a reused pid apart.
  readonly start_time?: string;
  // The run that it works for, if it is one.
  readonly run_id?: string;
}

export async function openDataDir(path: string, writer: Writer): Promise<DataDir> {
  return usable(path, async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const real = realpathSync(path);
    const lock = await takeLock(path, writer);
    try {
      const { store, access } = await openStore(join(path, 'parley.db'));
      return {
        // The folder itself, whatever link led to it: what is stored names it.
        path: real,
        store,
        access,
        close: async () => {
          access.flush();
          await store.close();
          release(lock);
        },
      };
    } catch (error) {
      release(lock);
      throw error;
    }
  });
}

// For whoever keeps only files there; answers how to let it go.
export async function lockDataDir(path: string, writer: Writer): Promise<() => void> {
  return usable(path, async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = await takeLock(path, writer);
    return () => release(lock);
  });
}

function release(lock: Database): void {
  held.delete(lock);
  lock.close();
}

async function openStore(path: string): Promise<{ store: SqliteStore; access: SqliteAccess }> {
  if (existsSync(`${path}-wal`)) await lookAtLog(path);
  const db = await openDatabase(privateFile(path));
  try {
    // First of all: what is refused is not touched, not even its journal mode.
    migrate(db, MIGRATIONS, checkTables);
    makeDurable(db);
    return { store: new SqliteStore(db, watchFiles(path)), access: new SqliteAccess(db) };
  } catch (error) {
    db.close();
    throw error;
  }
}

// A log that was left beside the file is written into it when the file is closed, and be it the log of another
// database: it is looked at first by one that may not write.
async function lookAtLog(path: string): Promise<void> {
  const db = await openDatabase(path, { readOnly: true });
  try {
    const version = checkVersion(db);
    if (version === NEWEST_VERSION) checkTables(db);
    else checkSound(db, version);
  } finally {
    db.close();
  }
}

async function takeLock(path: string, writer: Writer): Promise<Database> {
  const lock = await openLock(privateFile(join(path, 'lock.db')));
  try {
    lock.exec('BEGIN EXCLUSIVE');
    noteWriter(path, writer);
    held.add(lock);
    return lock;
  } catch (error) {
    lock.close();
    if (error instanceof Error && isDamage(error.message)) {
      throw new RequestError(
        'DATA_DIR_UNUSABLE',
        `${join(path, 'lock.db')} is damaged. It holds no data: make sure that no Parley runs on ${path}, then ` +
          `delete it. (SQLite: ${error.message})`,
      );
    }
    if (!isBusy(error)) throw error;
    throw new RequestError(
      'DATA_DIR_IN_USE',
      `the data directory ${path} is in use by ${describeWriter(readWriter(path))}`,
    );
  }
}

// Made before SQLite opens it: the files that SQLite puts beside it get the same mode. One that is there is not opened
// here: closing it again would drop every lock that this process has on it.
function privateFile(path: string): string {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return path;
}

// The lock itself is what counts; this only says whose it is. Left behind when the writer is gone.
export function noteWriter(path: string, writer: Writer): void {
  replaceFile(join(path, NOTE), JSON.stringify(writer));
}

export function readWriter(path: string): Writer | null {
  try {
    return JSON.parse(readTextSync(join(path, NOTE), OWN_FILE) ?? 'null') as Writer | null;
  } catch {
    return null;
  }
}

function describeWriter(writer: Writer | null): string {
  if (writer === null) return 'a process that did not say who it is';
  return `process ${writer.pid}${writer.run_id === undefined ? '' : `, which works on ${writer.run_id}`}`;
}

// Only to look, beside whoever writes; null if there is nothing yet.
export async function openForReading(path: string): Promise<DataDir | null> {
  return usable(path, async () => {
    const file = join(path, 'parley.db');
    if (!existsSync(file)) return null;
    const db = await openReadOnly(file);
    try {
      const version = checkVersion(db);
      if (version < NEWEST_VERSION) {
        db.close();
        if (version === 0) return null;
        throw new RequestError(
          'DATA_DIR_UNUSABLE',
          `the database in ${path} is of an older version (${version}): any command that writes brings it up to date`,
        );
      }
      checkTables(db);
      const store = new SqliteStore(db);
      return { path, store, access: new SqliteAccess(db), close: () => store.close() };
    } catch (error) {
      if (db.isOpen) db.close();
      throw error;
    }
  });
}

// Structural damage of the database file, in the words of SQLite; empty: none. Reads the whole file.
export async function checkIntegrity(path: string): Promise<string[]> {
  return usable(path, async () => {
    const db = await openDatabase(join(path, 'parley.db'), { readOnly: true });
    try {
      return tell(db, 'SELECT tell_value(quick_check) FROM pragma_quick_check')
        .filter((finding) => finding !== 'ok')
        .slice(0, 10);
    } finally {
      db.close();
    }
  });
}

export interface AccessDir {
  readonly access: AccessStore;
  close(): Promise<void>;
}

// Opens the access tables to write beside whichever process holds the data directory: their transactions are short, and
// SQLite lets one writer in at a time. A database that is missing or of an older version is made or migrated first,
// which needs the directory's lock.
export async function openAccess(path: string, writer: Writer): Promise<AccessDir> {
  const file = join(path, 'parley.db');
  if (!existsSync(file)) return openDataDir(path, writer);
  return usable(path, async () => {
    const reader = await openDatabase(file, { readOnly: true });
    let version: number;
    try {
      version = checkVersion(reader);
      if (version === NEWEST_VERSION) checkTables(reader);
    } finally {
      reader.close();
    }
    if (version < NEWEST_VERSION) return openDataDir(path, writer);
    const db = await openDatabase(file);
    makeDurable(db);
    const access = new SqliteAccess(db);
    return {
      access,
      close: async () => {
        access.flush();
        db.close();
      },
    };
  });
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message);
}

// What the system or SQLite refuses becomes one error with a code; it tells the path.
export async function usable<T>(path: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    // SQLite may quote what is damaged: all of it on one line.
    const reason = (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ').trim();
    throw new RequestError(
      'DATA_DIR_UNUSABLE',
      `the data directory ${path} cannot be used: ${explainSqlite(reason) ?? reason}`,
    );
  }
}
