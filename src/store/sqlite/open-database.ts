// Opens the database through the node:sqlite API: the built-in one where it comes without a warning, else the package
// with the same API.
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { readAllIntegers } from './read-integers.js';

export type Database = DatabaseSyncInstance;
export type Statement = ReturnType<Database['prepare']>;
type Driver = { DatabaseSync: new (path: string, options?: { readOnly?: boolean; timeout?: number }) => Database };

// node:sqlite exists since 22.5, but prints a warning there.
const FIRST_QUIET_MAJOR = 24;

// The page size of a new database; an existing one keeps its own. The data is mostly large text, and SQLite writes
// whole pages: measured, a large write takes a fifth less time than with 4 KiB. With 16 KiB it is two fifths, but small
// writes take longer.
const PAGE_BYTES = 8 * 1024;

// How long a statement waits for another process.
export const BUSY_MS = 5000;

export async function openDatabase(path: string, options: { readOnly?: boolean } = {}): Promise<Database> {
  const driver = await loadDriver();
  const db = new driver.DatabaseSync(path, { readOnly: options.readOnly ?? false, timeout: BUSY_MS });
  readAllIntegers(db);
  if (!options.readOnly) db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  return db;
}

// The write-ahead log is cut to this size when it begins anew: while another process holds a read transaction, it keeps
// everything that is written.
const MOST_LOG_BYTES = 16 * 1024 * 1024;

// From now on every commit is on the disk before it is acknowledged.
export function makeDurable(db: Database): void {
  db.exec('PRAGMA journal_mode = WAL');
  db.exec(`PRAGMA journal_size_limit = ${MOST_LOG_BYTES}`);
  db.exec('PRAGMA synchronous = FULL');
  db.exec('PRAGMA foreign_keys = ON');
}

// Free pages can be returned to the file system one by one, without rewriting the file. Applies to a database without
// pages, and to any other after the next VACUUM.
export function returnFreePages(db: Database): void {
  db.exec('PRAGMA auto_vacuum = INCREMENTAL');
}

// A database that is used only as a lock: nothing is written, and nobody waits for it.
export async function openLock(path: string): Promise<Database> {
  const driver = await loadDriver();
  return new driver.DatabaseSync(path, { timeout: 0 });
}

function driverName(): string {
  const major = Number(process.versions.node.split('.')[0]);
  return major >= FIRST_QUIET_MAJOR ? 'node:sqlite' : '@photostructure/sqlite';
}

async function loadDriver(): Promise<Driver> {
  return (await import(driverName())) as Driver;
}

// Runs the work in a transaction. The work is synchronous, so nothing else can happen in between.
export function transact<T>(db: Database, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    rollback(db);
    throw error;
  }
}

// SQLite may have rolled back already, for instance when the disk is full.
export function rollback(db: Database): void {
  try {
    db.exec('ROLLBACK');
  } catch {
    // No transaction is open, which is the goal.
  }
}
