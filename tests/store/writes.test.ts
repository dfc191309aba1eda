// Writes of one event-loop tick: one transaction for all, a result for each, in order.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { Writes } from '../../src/store/sqlite/commits/writes.js';
import type { RunRecord } from '../../src/store/store.js';
import { T0, change, flush, newRun } from './conformance.js';

let dir: string;
let db: Database;
// The statements on the database as a whole.
let said: string[] = [];
// The next statements that fail, in this order.
let failing: string[] = [];

function listenTo(real: Database): Database {
  return new Proxy(real, {
    get: (_target, name) => {
      const own = Reflect.get(real, name, real) as unknown;
      if (typeof own !== 'function') return own;
      return (...args: unknown[]) => {
        if (name === 'exec') said.push(String(args[0]));
        if (name === 'exec' && args[0] === failing[0]) throw new Error(`disk full: ${failing.shift()}`);
        return (own as (...all: unknown[]) => unknown).apply(real, args);
      };
    },
  });
}

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-writes-'));
  db = listenTo(await openDatabase(join(dir, 'parley.db')));
  makeDurable(db);
  migrate(db, MIGRATIONS);
  said = [];
  failing = [];
});
afterEach(() => {
  if (db.isOpen) db.close();
  rmSync(dir, { recursive: true });
});

const commits = (): number => said.filter((sql) => sql === 'COMMIT').length;

test('writes of many runs in one tick share a transaction, and each gets its own result', async () => {
  const store = new SqliteStore(db, loadGroups(db));
  const created = await Promise.all(
    Array.from({ length: 50 }, (_, index) => store.createRun(newRun(index + 1, { queue_limit: 100 }))),
  );
  expect(commits()).toBe(1);
  const runs = created.map((outcome) => (outcome as { run: RunRecord }).run);
  const calls: string[] = [];
  store.onCommitted(({ run_id: runId }) => calls.push(runId));
  // The last one is too late: somebody was before it.
  const outcomes = await Promise.all(
    [...runs, runs[0] as RunRecord].map((run) =>
      store.append(change(run, { journal: flush(3, 2, null, T0 + 1_000_000) })),
    ),
  );
  expect(commits()).toBe(2);
  expect(outcomes.slice(0, 50).every(({ committed }) => committed)).toBe(true);
  expect(outcomes[50]).toEqual({ committed: false, reason: 'seq' });
  expect(calls).toEqual(runs.map(({ run_id: runId }) => runId));
  for (const { run_id: runId } of runs) expect(await store.readJournal(runId, 'rasp', { limit: 10 })).toHaveLength(4);
});

test('one that cannot be written does not take the others with it, and leaves nothing behind', async () => {
  const writes = new Writes(db);
  db.exec('CREATE TABLE things (name TEXT PRIMARY KEY)');
  const insert = (name: string) => writes.add(() => db.prepare('INSERT INTO things VALUES (?)').run(name));
  const answers = await Promise.allSettled([
    insert('a'),
    insert('b'),
    writes.add(() => {
      db.prepare('INSERT INTO things VALUES (?)').run('half');
      throw new Error('not this one');
    }),
    insert('b'),
    insert('c'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'rejected', 'fulfilled']);
  expect(answers[2]).toMatchObject({ reason: { message: 'not this one' } });
  expect(db.prepare('SELECT name FROM things ORDER BY name').all()).toEqual([
    { name: 'a' },
    { name: 'b' },
    { name: 'c' },
  ]);
});

test('a write too large for the free space fails, others are stored, a full disk is not retried forever', async () => {
  const writes = new Writes(db);
  db.exec('CREATE TABLE things (body BLOB)');
  const { max_page_count: pages } = db.prepare('PRAGMA max_page_count = 200').get() as { max_page_count: number };
  expect(pages).toBe(200);
  let works = 0;
  const put = (bytes: number) =>
    writes.add(() => {
      works += 1;
      db.prepare('INSERT INTO things VALUES (?)').run(Buffer.alloc(bytes, 1));
    });
  const beside = await Promise.allSettled([put(100), put(10_000_000), put(100)]);
  expect(beside.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(beside[1]).toMatchObject({ reason: { message: expect.stringMatching(/full/) as string } });
  works = 0;
  const many = await Promise.allSettled(Array.from({ length: 128 }, () => put(50_000)));
  const stored = many.filter(({ status }) => status === 'fulfilled').length;
  expect(stored).toBeGreaterThan(20);
  expect(stored).toBeLessThan(40);
  expect(works).toBeLessThan(128 * 8);
  expect(db.prepare('SELECT COUNT(*) AS things FROM things').get()).toEqual({ things: 2 + stored });
});

test('when the file is locked by another process, all writes of the tick fail after one try', async () => {
  const writes = new Writes(db);
  db.exec('PRAGMA busy_timeout = 0');
  const other = await openDatabase(join(dir, 'parley.db'));
  other.exec('BEGIN IMMEDIATE');
  const answers = await Promise.allSettled([writes.add(() => 1), writes.add(() => 2), writes.add(() => 3)]);
  expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
  expect(said.filter((sql) => sql.startsWith('BEGIN'))).toHaveLength(1);
  other.exec('ROLLBACK');
  other.close();
  expect(await writes.add(() => 4)).toBe(4);
});

test('writes requested before close are stored, and none after it', async () => {
  const store = new SqliteStore(db, loadGroups(db));
  const asked = store.createRun(newRun(1));
  await store.close();
  expect(await asked).toMatchObject({ created: true });
  await expect(store.createRun(newRun(2))).rejects.toThrow(/not open/);
  db = await openDatabase(join(dir, 'parley.db'));
  const again = new SqliteStore(db, loadGroups(db));
  expect(await again.loadRun('run_0001')).not.toBeNull();
  expect(await again.loadRun('run_0002')).toBeNull();
});

test('large writes are spread over several transactions in order, and other work runs between them', async () => {
  const writes = new Writes(db);
  const order: string[] = [];
  const add = (name: string, bytes: number) =>
    writes.add(
      () => order.push(`write ${name}`),
      () => order.push(`done ${name}`),
      { bytes },
    );
  const all = [add('a', 900_000), add('b', 900_000), add('c', 10), add('d', 5_000_000), add('e', 10)];
  const between: number[] = [];
  const count = (): void => {
    between.push(commits());
    if (order.filter((each) => each.startsWith('done')).length < 5) setImmediate(count);
  };
  setImmediate(count);
  await Promise.all(all);
  expect(order).toEqual([
    'write a',
    'done a',
    'write b',
    'write c',
    'done b',
    'done c',
    'write d',
    'done d',
    'write e',
    'done e',
  ]);
  expect(commits()).toBe(4);
  expect(new Set(between).size).toBeGreaterThan(2);
  // At the end nothing waits for a turn.
  const [late, later] = [add('f', 5_000_000), add('g', 5_000_000)];
  writes.drain();
  await Promise.all([late, later]);
  expect(commits()).toBe(6);
});

test('a write that must be alone shares its transaction with no other', async () => {
  const writes = new Writes(db);
  const order: string[] = [];
  const add = (name: string, alone: boolean) =>
    writes.add(
      () => order.push(`write ${name}`),
      () => order.push(`done ${name}`),
      { alone },
    );
  await Promise.all([add('a', false), add('b', false), add('c', true), add('d', true), add('e', false)]);
  expect(order).toEqual([
    'write a',
    'write b',
    'done a',
    'done b',
    'write c',
    'done c',
    'write d',
    'done d',
    'write e',
    'done e',
  ]);
  expect(commits()).toBe(4);
});

test('urgent writes and others take turns, each kind in its order, and no transaction has both', async () => {
  const writes = new Writes(db);
  const order: string[] = [];
  const add = (name: string, options: { readonly bytes?: number; readonly urgent?: boolean }) =>
    writes.add(
      () => order.push(name),
      () => order.push('|'),
      options,
    );
  const large = 900_000;
  const first = [add('a', { bytes: large }), add('b', { bytes: large }), add('c', { bytes: large })];
  const urgent = [add('1', { urgent: true }), add('2', { urgent: true }), add('3', { urgent: true, bytes: 2_000_000 })];
  await urgent[1];
  // Requested after the others, and before them again.
  urgent.push(add('4', { urgent: true }));
  await Promise.all([...first, ...urgent]);
  expect(order.join(' ')).toBe('1 2 | | a | 3 | b | 4 | c |');
  expect(commits()).toBe(6);
  // At the end nothing waits for a turn.
  const last = [add('d', {}), add('5', { urgent: true })];
  writes.drain();
  await Promise.all(last);
  expect(order.slice(-4)).toEqual(['5', '|', 'd', '|']);
});

test('after a transaction failed, a small flush is checked against the row as it is stored', async () => {
  const store = new SqliteStore(db, loadGroups(db));
  const { run } = (await store.createRun(newRun(1))) as { run: RunRecord };
  const small = (status: 'queued' | 'running') =>
    store.append(
      change({ ...run, status }, { journal: flush(run.heads.rasp_seq + 1, 1, null, T0 + 1_000_000), set: {} }),
    );
  failing = ['COMMIT'];
  // The flush is urgent, so its transaction is the one that fails.
  const [started, flushed] = await Promise.allSettled([
    store.append(change(run, { set: { status: 'running' } })),
    small('queued'),
  ]);
  expect(flushed).toMatchObject({ status: 'rejected', reason: { message: 'disk full: COMMIT' } });
  expect(started).toMatchObject({ value: { committed: true } });
  expect(await small('queued')).toMatchObject({ committed: false, reason: 'status' });
  expect((await store.loadRun('run_0001'))?.status).toBe('running');
});
