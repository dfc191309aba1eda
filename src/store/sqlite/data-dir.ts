// A data directory on this machine: created if missing, readable by its owner only, written by one process at a time.
// The writer holds an exclusive lock in a small database of its own, so the lock is released when the process exits.
import type { Phrase } from '../../kernel/fill-template.js';
import { phrase } from '../../messages/phrase.js';
import { closeSync, existsSync, mkdirSync, openSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { RequestError, refusal } from '../../run/request-error.js';
import type { AccessStore } from '../access-store.js';
import type { Store } from '../store.js';
import { SqliteAccess } from './access.js';
import { checkSound, checkTables, tell } from './check-tables.js';
import { explainSqlite, isDamage } from './explain-sqlite.js';
import { checkVersion, migrate, NEWEST_VERSION } from './migrate.js';
import { MIGRATIONS } from './migrations.js';
import { Writes } from './commits/writes.js';
import { makeDurable, openDatabase, openLock, type Database } from './open-database.js';
import { openReadOnly } from './open-read-only.js';
import { loadGroups } from './recent/load-groups.js';
import { FreePages } from './space/free-pages.js';
import { SqliteStore } from './sqlite-store.js';
import { watchFiles } from './commits/watch-files.js';

const NOTE = 'writer.json';
// Keeps a reference to each lock: otherwise it would be garbage-collected, and another process could get the directory.
const held = new Set<Database>();

export interface DataDir {
  readonly path: string;
  readonly store: Store;
  readonly access: AccessStore;
  close(): Promise<void>;
}

// The process that writes to a data directory, for messages and for callers that connect to it.
export interface Writer {
  readonly pid: number;
  // Distinguishes a reused pid.
  readonly start_time?: string;
  // The run that the process works for, if there is one.
  readonly run_id?: string;
}

export async function openDataDir(path: string, writer: Writer): Promise<DataDir> {
  return withDataDirErrors(path, async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const real = realpathSync(path);
    const lock = await takeLock(path, writer);
    try {
      const { store, access, freePages } = await openStore(join(path, 'parley.db'));
      return {
        // Resolves links, because stored paths contain the folder.
        path: real,
        store,
        access,
        close: async () => {
          freePages.close();
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

// For callers that store only files there. Returns the function that releases the lock.
export async function lockDataDir(path: string, writer: Writer): Promise<() => void> {
  return withDataDirErrors(path, async () => {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const lock = await takeLock(path, writer);
    return () => release(lock);
  });
}

function release(lock: Database): void {
  held.delete(lock);
  lock.close();
}

// For the process that has the lock. Creates a missing database and migrates an older one.
export async function openMigrated(path: string): Promise<Database> {
  if (existsSync(`${path}-wal`)) await lookAtLog(path);
  const db = await openDatabase(privateFile(path));
  try {
    // Checked first: a refused database is not changed in any way, not even its journal mode.
    migrate(db, MIGRATIONS, checkTables);
    makeDurable(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

interface OpenStore {
  readonly store: SqliteStore;
  readonly access: SqliteAccess;
  readonly freePages: FreePages;
}

async function openStore(path: string): Promise<OpenStore> {
  const db = await openMigrated(path);
  try {
    const store = new SqliteStore(db, loadGroups(db), { checkFiles: watchFiles(path) });
    const freePages = new FreePages(db, store.writes);
    store.onCommitted(() => freePages.freed());
    return { store, access: new SqliteAccess(db, store.writes), freePages };
  } catch (error) {
    db.close();
    throw error;
  }
}

// SQLite writes a left-over log into the file when the file is closed, even the log of another database. So it is first
// checked with a read-only connection.
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
      throw refusal('DATA_DIR_UNUSABLE.lock_damaged', { file: join(path, 'lock.db'), path, reason: error.message });
    }
    if (!isBusy(error)) throw error;
    throw refusal('DATA_DIR_IN_USE.writer', { path, writer: describeWriter(readWriter(path)) });
  }
}

// Created before SQLite opens it, because files that SQLite creates beside it get the same mode. An existing file is
// not opened here: closing it would drop every lock that this process has on it.
function privateFile(path: string): string {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  return path;
}

// Only names the owner; the lock itself decides. The file remains when the writer has exited.
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

export function describeWriter(writer: Writer | null): Phrase {
  if (writer === null) return phrase('writer_unknown');
  const { pid, run_id: run } = writer;
  return run === undefined ? phrase('writer_process', { pid }) : phrase('writer_run', { pid, run });
}

// Opens the store read-only beside the writer; null if there is none yet.
export async function openForReading(path: string): Promise<DataDir | null> {
  return withDataDirErrors(path, async () => {
    const file = join(path, 'parley.db');
    if (!existsSync(file)) return null;
    const db = await openReadOnly(file);
    try {
      const version = checkVersion(db);
      if (version < NEWEST_VERSION) {
        db.close();
        if (version === 0) return null;
        throw refusal('DATA_DIR_UNUSABLE.old_version', { path, version });
      }
      checkTables(db);
      const store = new SqliteStore(db, null);
      return { path, store, access: new SqliteAccess(db, store.writes), close: () => store.close() };
    } catch (error) {
      if (db.isOpen) db.close();
      throw error;
    }
  });
}

// Structural damage of the database file as SQLite reports it; empty: none. Reads the whole file.
export async function checkIntegrity(path: string): Promise<string[]> {
  return withDataDirErrors(path, async () => {
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

// Opens the access tables for writing beside the process that holds the data directory: their transactions are short,
// and SQLite admits one writer at a time. A missing or older database is created or migrated first, which needs the
// lock of the directory.
export async function openAccess(path: string, writer: Writer): Promise<AccessDir> {
  const file = join(path, 'parley.db');
  if (!existsSync(file)) return openDataDir(path, writer);
  return withDataDirErrors(path, async () => {
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
    const writes = new Writes(db);
    return {
      access: new SqliteAccess(db, writes),
      close: async () => {
        writes.drain();
        db.close();
      },
    };
  });
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /locked|busy/i.test(error.message);
}

// Turns errors of the system and of SQLite into one error with a code and the path.
export async function withDataDirErrors<T>(path: string, open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof RequestError) throw error;
    // SQLite may quote damaged data: keep the message on one line.
    const reason = (error instanceof Error ? error.message : String(error)).replaceAll(/\s+/g, ' ').trim();
    throw refusal('DATA_DIR_UNUSABLE.other', { path, reason: explainSqlite(reason) ?? reason });
  }
}
