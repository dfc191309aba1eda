// Free pages are returned to the file system in small steps between other writes, without any command.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { CHECK_MS, FreePages, HELD_UP_MS, PAUSE_MS } from '../../src/store/sqlite/space/free-pages.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { JournalFlush, RunRecord } from '../../src/store/store.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { T0, change, flush, newRun } from './conformance.js';

const MIB = 1024 * 1024;
// The events of one run take about a megabyte.
const EVENTS = 250;
const EVENT_BYTES = 3000;

interface Opened {
  readonly db: Database;
  readonly store: SqliteStore;
  readonly freePages: FreePages;
}

let dir: string;
let path: string;
let timers: SimulatedTimers;
let opened: Opened | null;
// The statements on the database as a whole.
let said: string[];
// The next statement of this form fails.
let failing: RegExp | null;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-free-pages-'));
  path = join(dir, 'parley.db');
  timers = new SimulatedTimers();
  opened = null;
  said = [];
  failing = null;
});
afterEach(async () => {
  if (opened?.db.isOpen) await close(opened);
  rmSync(dir, { recursive: true });
});

function listenTo(real: Database): Database {
  return new Proxy(real, {
    get: (_target, name) => {
      const own = Reflect.get(real, name, real) as unknown;
      if (typeof own !== 'function') return own;
      return (...args: unknown[]) => {
        if (name === 'exec') said.push(String(args[0]));
        if (name === 'exec' && failing?.test(String(args[0]))) {
          failing = null;
          throw new Error('database or disk is full');
        }
        return (own as (...all: unknown[]) => unknown).apply(real, args);
      };
    },
  });
}

async function open(): Promise<Opened> {
  const db = listenTo(await openDatabase(path));
  migrate(db);
  makeDurable(db);
  const store = new SqliteStore(db, loadGroups(db));
  const freePages = new FreePages(db, store.writes, timers);
  store.onCommitted(() => freePages.freed());
  opened = { db, store, freePages };
  return opened;
}

async function close({ freePages, store }: Opened): Promise<void> {
  freePages.close();
  await store.close();
}

const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// Lets time pass until the condition holds.
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) {
    timers.advance(PAUSE_MS);
    await immediate();
  }
}

// Nothing makes these events small.
function largeFlush(seq: number, events: number, ts: number): JournalFlush {
  const { rasp, ...rest } = flush(seq, events, null, ts);
  const texts = Array.from({ length: events }, () => JSON.stringify(randomBytes(EVENT_BYTES).toString('base64')));
  return { ...rest, rasp: { ...rasp, bytes: Buffer.from(`${texts.join('\n')}\n`) } };
}

async function createEnded(store: SqliteStore, number: number, events = EVENTS): Promise<void> {
  await store.createRun(newRun(number));
  const queued = (await store.loadRun(idOf(number))) as RunRecord;
  await store.append(change(queued, { journal: largeFlush(3, events, T0 + 5000) }));
  const run = (await store.loadRun(idOf(number))) as RunRecord;
  expect(await store.append(change(run, { set: { status: 'canceled' } }))).toMatchObject({ committed: true });
}

const idOf = (number: number): string => `run_${String(number).padStart(4, '0')}`;
const fileBytes = (): number => statSync(path).size;
const read = (db: Database, name: string): number =>
  Number(Object.values(db.prepare(`PRAGMA ${name}`).get() as object)[0]);
const steps = (): string[] => said.filter((sql) => sql.includes('incremental_vacuum'));

test('a data directory returns free pages by itself, and one of an earlier version does not', async () => {
  const data = await openDataDir(dir, { pid: process.pid });
  await data.close();
  const db = await openDatabase(path);
  expect(read(db, 'auto_vacuum')).toBe(2);
  expect(read(db, 'page_size')).toBe(8192);
  db.close();
  rmSync(path);
  const old = await openDatabase(path);
  old.exec('CREATE TABLE anything (name TEXT); DROP TABLE anything');
  migrate(old);
  const store = new SqliteStore(old, loadGroups(old));
  new FreePages(old, store.writes, timers).freed();
  expect(timers.lengths()).toEqual([]);
  await store.close();
});

test('after deletions the file becomes smaller step by step, keeps a reserve, and the other runs stay', async () => {
  const { db, store } = await open();
  for (let number = 1; number <= 12; number += 1) await createEnded(store, number);
  const before = read(db, 'page_count');
  said = [];
  for (let number = 1; number <= 12; number += 1)
    if (number % 4 !== 0) expect(await store.deleteRun(idOf(number))).toBe('deleted');
  expect(read(db, 'freelist_count')).toBeGreaterThan(before / 2);
  expect(steps()).toEqual([]);
  const reserve = (): number => Math.max(64, Math.floor(read(db, 'page_count') / 8));
  await until(() => read(db, 'freelist_count') <= reserve());
  expect(steps().length).toBeGreaterThan(5);
  // Not below the reserve, and nothing more to do.
  expect(read(db, 'freelist_count')).toBeGreaterThan(reserve() - 64);
  await until(() => fileBytes() === read(db, 'page_count') * 8192);
  expect(read(db, 'page_count')).toBeLessThan(before / 2);
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  for (const number of [4, 8, 12]) {
    const run = (await store.loadRun(idOf(number))) as RunRecord;
    expect(await store.recomputeDigest(idOf(number))).toBe(run.heads.digest);
  }
});

test('each step is a short transaction of its own, and writes of others are between them', async () => {
  const all = await open();
  const { store } = all;
  for (let number = 1; number <= 6; number += 1) await createEnded(store, number);
  for (let number = 1; number <= 6; number += 1) await store.deleteRun(idOf(number));
  said = [];
  let created = 100;
  await until(() => {
    void store.createRun(newRun((created += 1)));
    return steps().length >= 5;
  });
  await close(all);
  const transactions = said
    .join('\n')
    .split('BEGIN IMMEDIATE\n')
    .filter((sql) => sql.includes('COMMIT'));
  const vacuums = transactions.filter((sql) => sql.includes('incremental_vacuum'));
  expect(vacuums).toHaveLength(5);
  for (const sql of vacuums) expect(sql).toMatch(/^PRAGMA incremental_vacuum\(\d+\)\nCOMMIT/);
  for (const sql of vacuums) expect(Number(/\((\d+)\)/.exec(sql)?.[1])).toBeLessThanOrEqual(32);
  const places = transactions.flatMap((sql, place) => (sql.includes('incremental_vacuum') ? [place] : []));
  expect(places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0) + 1)).toBe(true);
});

test('a few free pages are kept for the next rows', async () => {
  const { db, store } = await open();
  for (let number = 1; number <= 4; number += 1) await createEnded(store, number);
  await createEnded(store, 5, 60);
  await store.deleteRun(idOf(5));
  const free = read(db, 'freelist_count');
  expect(free).toBeGreaterThan(0);
  await timers.armed(CHECK_MS);
  timers.advance(CHECK_MS);
  expect(timers.lengths()).not.toContain(PAUSE_MS);
  await immediate();
  expect({ steps: steps(), free: read(db, 'freelist_count') }).toEqual({ steps: [], free });
});

test('what an earlier process has not finished is finished by the next one', async () => {
  const first = await open();
  for (let number = 1; number <= 8; number += 1) await createEnded(first.store, number);
  for (let number = 1; number <= 8; number += 1) await first.store.deleteRun(idOf(number));
  await close(first);
  const before = fileBytes();
  const { db } = await open();
  await until(() => read(db, 'freelist_count') <= 64);
  await until(() => fileBytes() < before / 3);
});

test('a full disk during a step loses nothing, and a later commit tries again', async () => {
  const { db, store } = await open();
  for (let number = 1; number <= 6; number += 1) await createEnded(store, number);
  for (let number = 1; number <= 4; number += 1) await store.deleteRun(idOf(number));
  for (const [index, statement] of [/incremental_vacuum/, /COMMIT/].entries()) {
    await store.createRun(newRun(50 + index));
    const free = read(db, 'freelist_count');
    failing = statement;
    await until(() => failing === null);
    await immediate();
    expect(read(db, 'freelist_count')).toBe(free);
    expect(timers.lengths()).not.toContain(PAUSE_MS);
  }
  expect(steps().length).toBe(2);
  const free = read(db, 'freelist_count');
  const run = (await store.loadRun(idOf(6))) as RunRecord;
  expect(await store.recomputeDigest(idOf(6))).toBe(run.heads.digest);
  expect(await store.deleteRun(idOf(5))).toBe('deleted');
  await until(() => read(db, 'freelist_count') < free / 2);
  expect(await store.recomputeDigest(idOf(6))).toBe(run.heads.digest);
});

test('while a reader keeps an old state nothing is moved; when it ends, file and log become smaller', async () => {
  const { db, store } = await open();
  for (let number = 1; number <= 24; number += 1) await createEnded(store, number);
  const reader = await openDatabase(path, { readOnly: true });
  reader.exec('BEGIN');
  reader.prepare('SELECT COUNT(*) FROM runs').get();
  // More than the log usually has.
  for (let number = 25; number <= 45; number += 1) await createEnded(store, number);
  for (let number = 1; number <= 45; number += 1) await store.deleteRun(idOf(number));
  timers.advance(CHECK_MS);
  await timers.armed(HELD_UP_MS);
  const before = { bytes: fileBytes(), steps: steps().length };
  for (let round = 0; round < 5; round += 1) {
    timers.advance(HELD_UP_MS);
    await immediate();
  }
  expect({ bytes: fileBytes(), steps: steps().length }).toEqual(before);
  expect(statSync(`${path}-wal`).size).toBeGreaterThan(16 * MIB);
  expect(reader.prepare('SELECT COUNT(*) AS count FROM runs').get()).toEqual({ count: 24 });
  reader.exec('COMMIT');
  reader.close();
  // The next writes move the log and begin it anew.
  await createEnded(store, 46, 5);
  await createEnded(store, 47, 5);
  timers.advance(HELD_UP_MS);
  await until(() => read(db, 'freelist_count') <= 2 * Math.max(64, read(db, 'page_count') / 8));
  await until(() => fileBytes() < before.bytes / 2);
  expect(statSync(`${path}-wal`).size).toBeLessThanOrEqual(16 * MIB);
});

test('closing in the middle leaves a sound database', async () => {
  const first = await open();
  const { store } = first;
  for (let number = 1; number <= 6; number += 1) await createEnded(store, number);
  for (let number = 1; number <= 5; number += 1) await store.deleteRun(idOf(number));
  await until(() => steps().length >= 2);
  await close(first);
  timers.advance(60_000);
  const { db, store: again } = await open();
  expect(db.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }]);
  const run = (await again.loadRun(idOf(6))) as RunRecord;
  expect(await again.recomputeDigest(idOf(6))).toBe(run.heads.digest);
});
