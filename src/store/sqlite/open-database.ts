// Opens the database through the node:sqlite API: the built-in one where it comes without a warning, else the package
// with the same API.
import type { DatabaseSyncInstance } from '@photostructure/sqlite';
import { readAllIntegers } from './read-integers.js';

export type Database = DatabaseSyncInstance;
export type Statement = ReturnType<Database['prepare']>;
type Driver = { DatabaseSync: new (path: string, options?: { readOnly?: boolean; timeout?: number }) => Database };

// node:sqlite exists since 22.5, but prints a warning there.
const FIRST_QUIET_MAJOR = 24;

// Of a new one; one that is there keeps its own. What is stored is mostly text in large pieces, and a page is what each
// write is counted in: measured, a large write takes a fifth less time than with 4 KiB. With 16 KiB it is two fifths,
// but small ones take longer.
const PAGE_BYTES = 8 * 1024;

export async function openDatabase(path: string, options: { readOnly?: boolean } = {}): Promise<Database> {
  const driver = await loadDriver();
  const db = new driver.DatabaseSync(path, { readOnly: options.readOnly ?? false, timeout: 5000 });
  readAllIntegers(db);
  if (!options.readOnly) db.exec(`PRAGMA page_size = ${PAGE_BYTES}`);
  return db;
}

// From now on every commit is on the disk before it is answered.
export function makeDurable(db: Database): void {
  db.exec('PRAGMA journal_mode = WAL');
  db.exec('PRAGMA synchronous = FULL');
  db.exec('PRAGMA foreign_keys = ON');
}

// A database that is only there to be locked: nothing is written, and nobody waits for it.
export async function openLock(path: string): Promise<Database> {
  const driver = await loadDriver();
  return new driver.DatabaseSync(path, { timeout: 0 });
}

async function loadDriver(): Promise<Driver> {
  const major = Number(process.versions.node.split('.')[0]);
  return (
    major >= FIRST_QUIET_MAJOR ? await import('node:sqlite' as string) : await import('@photostructure/sqlite')
  ) as Driver;
}

// All of it, or nothing. The work is synchronous: nothing else can come in between.
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

// SQLite may have done it already, when the disk is full for instance.
export function rollback(db: Database): void {
  try {
    db.exec('ROLLBACK');
  } catch {
    // No transaction is open any more, which is what is wanted.
  }
}
