// Opens the database through the node:sqlite API: the built-in one where it comes without a warning, else the package with
// the same API. Every commit is on the disk before it is answered.
import type { DatabaseSyncInstance } from '@photostructure/sqlite';

export type Database = DatabaseSyncInstance;
type Driver = { DatabaseSync: new (path: string, options?: { readOnly?: boolean; timeout?: number }) => Database };

// node:sqlite exists since 22.5, but prints a warning there.
const FIRST_QUIET_MAJOR = 24;

export async function openDatabase(path: string, options: { readOnly?: boolean } = {}): Promise<Database> {
  const driver = await loadDriver();
  const db = new driver.DatabaseSync(path, { readOnly: options.readOnly ?? false, timeout: 5000 });
  if (options.readOnly) return db;
  db.exec('PRAGMA journal_mode = WAL');
  db.exec('PRAGMA synchronous = FULL');
  db.exec('PRAGMA foreign_keys = ON');
  return db;
}

// A database that is only there to be locked: nothing is written, and nobody waits for it.
export async function openLock(path: string): Promise<Database> {
  const driver = await loadDriver();
  return new driver.DatabaseSync(path, { timeout: 0 });
}

async function loadDriver(): Promise<Driver> {
  const major = Number(process.versions.node.split('.')[0]);
  return (major >= FIRST_QUIET_MAJOR ? await import('node:sqlite' as string) : await import('@photostructure/sqlite')) as Driver;
}

// All of it, or nothing. The work is synchronous: nothing else can come in between.
export function transact<T>(db: Database, work: () => T): T {
  db.exec('BEGIN IMMEDIATE');
  try {
    const result = work();
    db.exec('COMMIT');
    return result;
  } catch (error) {
    db.exec('ROLLBACK');
    throw error;
  }
}
