// Databases as earlier versions left them: copies of the files in tests/old-databases, which were written by the
// programs of their time. scripts/make-old-databases.mjs explains how they were made.
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';

// Version 0 is the predecessor's. Each release adds the file of its version; steps that were never released alone have
// no file.
const folder = new URL('../old-databases/', import.meta.url);
export const VERSIONS = readdirSync(folder)
  .flatMap((name) => /^version-(\d+)\.db$/.exec(name)?.[1] ?? [])
  .map(Number)
  .toSorted((a, b) => a - b);

const keptFile = (version: number): URL => new URL(`version-${version}.db`, folder);

export async function copyDatabase(version: number, file: string, mode: 'wal' | 'delete' = 'wal'): Promise<void> {
  copyFileSync(keptFile(version), file);
  const db = await openDatabase(file);
  db.exec(`PRAGMA journal_mode = ${mode}`);
  db.close();
}

// The newest of them, migrated.
export const NEWEST_KEPT = VERSIONS.at(-1) ?? 0;

export async function copyNewest(file: string): Promise<void> {
  await copyDatabase(NEWEST_KEPT, file);
  const db = await openDatabase(file);
  migrate(db);
  db.close();
}

// A run in it.
export function keptRun(version: number): string {
  const runId = /run_[0-9A-Z]{26}/.exec(readFileSync(keptFile(version), 'latin1'))?.[0];
  if (runId === undefined) throw new Error(`no run in the database of version ${version}`);
  return runId;
}

// A closed database keeps its files open until its statements are collected: thousands of reads would exceed the limit
// of open files.
// what a process may open.
setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
const LOOKS_BETWEEN = 300;
let looks = 0;

// Reads a copy: even a reader leaves files next to a database. Null if it cannot be read.
export async function look<T>(file: string, work: (db: Database) => T): Promise<T | null> {
  const copy = `${file}-look`;
  if ((looks += 1) % LOOKS_BETWEEN === 0) {
    collect();
    // Only then the files are closed.
    await new Promise((resolve) => setImmediate(resolve));
  }
  let db: Database | undefined;
  try {
    for (const ending of ['', '-wal'])
      if (existsSync(`${file}${ending}`)) copyFileSync(`${file}${ending}`, `${copy}${ending}`);
    db = await openDatabase(copy);
    return work(db);
  } catch {
    return null;
  } finally {
    db?.close();
    for (const ending of ['', '-wal', '-shm', '-journal']) rmSync(`${copy}${ending}`, { force: true });
  }
}

// Everything in it, as text; the rows in their order. Null if it cannot be read completely.
export function dump(file: string): Promise<string | null> {
  return look(file, (db) => {
    const schema = db.prepare('SELECT name, type, sql FROM sqlite_master ORDER BY name').all() as {
      name: string;
      type: string;
    }[];
    const rows = schema
      .filter(({ type, name }) => type === 'table' && !name.startsWith('sqlite_'))
      .map(({ name }) => [name, allOf(db, name)]);
    const check = db.prepare('PRAGMA integrity_check').all();
    if (JSON.stringify(check) !== '[{"integrity_check":"ok"}]') return null;
    return JSON.stringify([db.prepare('PRAGMA user_version').get(), schema, rows], (_key, value: unknown) =>
      value instanceof Uint8Array
        ? Buffer.from(value).toString('base64')
        : typeof value === 'bigint'
          ? String(value)
          : value,
    );
  });
}

// Damage creates numbers that JavaScript cannot represent.
function allOf(db: Database, table: string): unknown[] {
  const rows = db.prepare(`SELECT * FROM "${table}"`);
  rows.setReadBigInts(true);
  return rows.all();
}
