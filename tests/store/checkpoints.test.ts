// Another thread moves the write-ahead log into the database file: the log stays small, and no write is lost.
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Checkpoints, IDLE_MS } from '../../src/store/sqlite/commits/checkpoints.js';
import { Writes } from '../../src/store/sqlite/commits/writes.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

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

// Lets time pass without writes until the condition holds.
async function idleUntil(timers: SimulatedTimers, condition: () => boolean): Promise<void> {
  while (!condition()) {
    timers.advance(IDLE_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function openReader(): Promise<Database> {
  const reader = await openDatabase(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT COUNT(*) FROM things').get();
  return reader;
}

test('after a burst, the log is emptied when nothing is written any more, and only then', async () => {
  const timers = new SimulatedTimers();
  const checkpoints = new Checkpoints(db, path, timers);
  const writes = new Writes(db, { checkpoints });
  await fill(writes, 200);
  const burst = logBytes();
  expect(burst).toBeGreaterThan(8 * MIB);
  for (let round = 0; round < 5; round += 1) {
    await fill(writes, 1);
    timers.advance(IDLE_MS);
  }
  expect(logBytes()).toBeGreaterThanOrEqual(burst);
  await idleUntil(timers, () => logBytes() === 0);
  // A small one is kept, and nothing wakes the process up.
  await fill(writes, 10);
  const small = logBytes();
  while (timers.lengths().length > 0) timers.advance(IDLE_MS);
  expect(logBytes()).toBe(small);
  expect(db.prepare('SELECT COUNT(*) AS count FROM things').get()).toEqual({ count: 215 });
  await checkpoints.close();
});

test('while a reader holds a transaction the log grows by what is written; when it ends it is emptied', async () => {
  const timers = new SimulatedTimers();
  const checkpoints = new Checkpoints(db, path, timers);
  const writes = new Writes(db, { checkpoints });
  const reader = await openReader();
  await fill(writes, 1600);
  // 100 MiB, although all of them were tried to be moved.
  expect(logBytes()).toBeGreaterThan(95 * MIB);
  expect(logBytes()).toBeLessThan(130 * MIB);
  expect(checkpoints.isHeldUp).toBe(true);
  // As long as the reader is there, idle time changes nothing.
  for (let round = 0; round < 20; round += 1) {
    timers.advance(IDLE_MS);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(logBytes()).toBeGreaterThan(95 * MIB);
  reader.exec('COMMIT');
  reader.close();
  await idleUntil(timers, () => logBytes() === 0);
  expect(checkpoints.isHeldUp).toBe(false);
  await checkpoints.close();
  expect(statSync(path).size).toBeGreaterThan(100 * MIB);
});

test('after a long reader a writer that never pauses gets a small log again', async () => {
  const checkpoints = new Checkpoints(db, path, new SimulatedTimers());
  const writes = new Writes(db, { checkpoints });
  const reader = await openReader();
  await fill(writes, 1600);
  expect(logBytes()).toBeGreaterThan(95 * MIB);
  reader.exec('COMMIT');
  reader.close();
  for (let filled = 0; logBytes() > 64 * MIB; filled += 50) {
    expect(filled).toBeLessThan(10_000);
    await fill(writes, 50);
  }
  await checkpoints.close();
});

test('the large log of a process that crashed is emptied by the next one', async () => {
  db.exec('PRAGMA wal_autocheckpoint = 0');
  const put = db.prepare('INSERT INTO things (body) VALUES (?)');
  for (let number = 0; number < 200; number += 1) put.run(Buffer.alloc(64 * 1024, number));
  const timers = new SimulatedTimers();
  const checkpoints = new Checkpoints(db, path, timers);
  await idleUntil(timers, () => logBytes() === 0);
  await checkpoints.close();
  expect(db.prepare('SELECT COUNT(*) AS count FROM things').get()).toEqual({ count: 200 });
});

test('a write during the emptying of the log waits for it without blocking this thread', async () => {
  db.exec('PRAGMA wal_autocheckpoint = 0');
  db.prepare('INSERT INTO things (body) VALUES (?)').run(Buffer.alloc(16 * MIB));
  const timers = new SimulatedTimers();
  const checkpoints = new Checkpoints(db, path, timers);
  const writes = new Writes(db, { checkpoints });
  timers.advance(IDLE_MS);
  const order: string[] = [];
  void checkpoints.wait()?.then(() => order.push(`emptied to ${logBytes()}`));
  await writes.add(() => order.push('written'));
  expect(order).toEqual(['emptied to 0', 'written']);
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
