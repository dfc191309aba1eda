// Another thread moves the write-ahead log into the database file: the log stays small, and no write is lost.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Checkpoints } from '../../src/store/sqlite/commits/checkpoints.js';
import { Writes } from '../../src/store/sqlite/commits/writes.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';

const MIB = 1024 * 1024;
let dir: string;
let path: string;
let db: Database;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-checkpoints-'));
  path = join(dir, 'parley.db');
  db = await openDatabase(path);
  makeDurable(db);
  db.exec('CREATE TABLE things (number INTEGER PRIMARY KEY, body BLOB)');
});
afterEach(() => {
  if (db.isOpen) db.close();
  rmSync(dir, { recursive: true });
});

const logBytes = (): number => statSync(`${path}-wal`).size;
const autocheckpoint = (): unknown => Object.values(db.prepare('PRAGMA wal_autocheckpoint').get() as object)[0];

async function fill(writes: Writes, count: number): Promise<void> {
  const put = db.prepare('INSERT INTO things (body) VALUES (?)');
  for (let number = 0; number < count; number += 1)
    await writes.add(() => put.run(Buffer.alloc(64 * 1024, number)), undefined, { bytes: 64 * 1024 });
}

test('the log of a writer that never pauses stays small, and all of it reaches the database', async () => {
  const checkpoints = new Checkpoints(db, path);
  const writes = new Writes(db, { checkpoints });
  await fill(writes, 2000);
  // 125 MiB were written.
  expect(logBytes()).toBeLessThan(64 * MIB);
  await checkpoints.close();
  db.close();
  const copy = await openDatabase(path, { readOnly: true });
  expect(copy.prepare('SELECT COUNT(*) AS count, SUM(length(body)) AS bytes FROM things').get()).toEqual({
    count: 2000,
    bytes: 2000 * 64 * 1024,
  });
  copy.close();
});

test('SQLite itself moves the log when the thread cannot', async () => {
  const checkpoints = new Checkpoints(db, join(dir, 'missing', 'parley.db'));
  expect(autocheckpoint()).toBe(0);
  const writes = new Writes(db, { checkpoints });
  await fill(writes, 600);
  expect(autocheckpoint()).toBe(1000);
  expect(logBytes()).toBeLessThan(64 * MIB);
  expect(db.prepare('SELECT COUNT(*) AS count FROM things').get()).toEqual({ count: 600 });
  await checkpoints.close();
});

test('a reader that keeps an old state of the database delays the end of the log, not the writes', async () => {
  const checkpoints = new Checkpoints(db, path);
  const writes = new Writes(db, { checkpoints });
  const reader = await openDatabase(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT COUNT(*) FROM things').get();
  await fill(writes, 600);
  expect(reader.prepare('SELECT COUNT(*) AS count FROM things').get()).toEqual({ count: 0 });
  reader.exec('COMMIT');
  reader.close();
  const before = logBytes();
  await fill(writes, 600);
  expect(logBytes()).toBeLessThanOrEqual(before + 48 * MIB);
  await checkpoints.close();
});

test('closing waits for the checkpoint in progress', async () => {
  const checkpoints = new Checkpoints(db, path);
  checkpoints.grew(1000);
  checkpoints.grew(4000);
  const moved = checkpoints.wait();
  expect(moved).not.toBeNull();
  await checkpoints.close();
  await moved;
  // Nothing begins afterwards.
  checkpoints.grew(5000);
  expect(checkpoints.wait()).toBeNull();
});
