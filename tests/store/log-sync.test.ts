// Another thread syncs the log of small flushes: readers get nothing that is not on the disk, whatever the disk does.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WriteAheadLog, type LogSync } from '../../src/store/sqlite/commits/log-sync.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { AppendOutcome, JournalFlush, RunRecord, Store } from '../../src/store/store.js';
import { chance } from '../support/torture.js';
import { T0, change, flush, newRun } from './conformance.js';

let dir: string;
let path: string;
const databases = new Set<Database>();

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-log-sync-'));
  path = join(dir, 'parley.db');
});
afterEach(() => {
  for (const db of databases) if (db.isOpen) db.close();
  databases.clear();
  rmSync(dir, { recursive: true });
});

async function open(file = path): Promise<Database> {
  const db = await openDatabase(file);
  databases.add(db);
  makeDurable(db);
  migrate(db, MIGRATIONS);
  return db;
}

const immediate = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// A log whose syncs end when the test says so.
class HeldLog implements LogSync {
  begun = 0;
  failHere: Error | null = null;
  #end: ((error: Error | null) => void) | null = null;

  sync(): Promise<void> {
    this.begun += 1;
    return new Promise((resolve, fail) => {
      this.#end = (error) => (error ? fail(error) : resolve());
    });
  }

  syncHere(): void {
    if (this.failHere) throw this.failHere;
  }

  close(): void {
    expect(this.#end, 'no sync is in progress').toBeNull();
  }

  async untilBegun(): Promise<void> {
    while (!this.#end) await immediate();
  }

  async end(error: Error | null = null): Promise<void> {
    await this.untilBegun();
    const end = this.#end;
    this.#end = null;
    end?.(error);
  }
}

interface Scene {
  readonly db: Database;
  readonly store: SqliteStore;
  readonly first: number;
  // The events of which readers were notified.
  readonly events: number[];
  append(seq: number): Promise<AppendOutcome>;
  stored(): Promise<number>;
}

async function openScene(log: LogSync): Promise<Scene> {
  const db = await open();
  const store = new SqliteStore(db, loadGroups(db), { log });
  const { run } = (await store.createRun(newRun(1))) as { run: RunRecord };
  const events: number[] = [];
  store.onCommitted(({ journal }) => void (journal && events.push(journal.rasp.lastSeq)));
  return {
    db,
    store,
    first: run.heads.rasp_seq + 1,
    events,
    append: (seq) => append(store, run, seq),
    stored: () => storedOf(store, run),
  };
}

const append = (store: Store, run: RunRecord, seq: number): Promise<AppendOutcome> =>
  store.append(
    change(
      { ...run, heads: { ...run.heads, rasp_seq: seq - 1 } },
      { journal: flush(seq, 1, null, T0 + 1_000_000 + seq) },
    ),
  );

const storedOf = async (store: Store, run: RunRecord): Promise<number> =>
  (await store.readJournal(run.run_id, 'rasp', { limit: 10_000 })).length;

const EIO = Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });

test('a small flush is neither acknowledged nor readable before its sync has ended', async () => {
  const log = new HeldLog();
  const { store, first, events, append: add, stored } = await openScene(log);
  let isDone = false;
  const added = add(first).then((outcome) => ((isDone = true), outcome));
  await log.untilBegun();
  await immediate();
  expect({ isDone, events, stored: await stored() }).toEqual({ isDone: false, events: [], stored: first - 1 });
  await log.end();
  expect(await added).toMatchObject({ committed: true });
  expect({ events, stored: await stored() }).toEqual({ events: [first], stored: first });
  await store.close();
});

test('during a sync no other transaction begins; all that wait share the next one', async () => {
  const log = new HeldLog();
  const { store, first, append: add } = await openScene(log);
  const order: string[] = [];
  const small = add(first).then(() => order.push('small'));
  await log.untilBegun();
  const created = [2, 3].map((number) => store.createRun(newRun(number)).then(() => order.push(`run ${number}`)));
  for (let turn = 0; turn < 5; turn += 1) await immediate();
  expect(order).toEqual([]);
  expect(await store.loadRun('run_0002')).toBeNull();
  await log.end();
  await Promise.all([small, ...created]);
  expect(order).toEqual(['small', 'run 2', 'run 3']);
  // SQLite has synced the runs itself.
  expect(log.begun).toBe(1);
  await store.close();
});

test('SQLite syncs each transaction that has anything else than small flushes', async () => {
  const log = new HeldLog();
  const { db, store, first, append: add } = await openScene(log);
  const level = (): unknown => (db.prepare('PRAGMA synchronous').get() as { synchronous: unknown }).synchronous;
  const [NORMAL, FULL] = [1, 2];
  const both = Promise.all([add(first), store.createRun(newRun(2))]);
  await both;
  expect([log.begun, level()]).toEqual([0, FULL]);
  const small = add(first + 1);
  await log.end();
  await small;
  expect([log.begun, level()]).toEqual([1, NORMAL]);
  await store.createRun(newRun(3));
  expect([log.begun, level()]).toEqual([1, FULL]);
  await store.close();
});

test('closing waits for the sync in progress and for everything that was requested', async () => {
  const log = new HeldLog();
  const { store, first, append: add } = await openScene(log);
  const added = add(first);
  await log.untilBegun();
  const next = add(first + 1);
  let isClosed = false;
  const closed = store.close().then(() => (isClosed = true));
  for (let turn = 0; turn < 5; turn += 1) await immediate();
  expect(isClosed).toBe(false);
  await log.end();
  expect(await added).toMatchObject({ committed: true });
  // The one that waited has a sync of its own.
  await log.end();
  expect(await next).toMatchObject({ committed: true });
  await closed;
});

test('after a failed sync, everything is written again into the database file before it is acknowledged', async () => {
  const log = new HeldLog();
  const { db, store, first, events, append: add, stored } = await openScene(log);
  const added = add(first);
  await log.end(EIO);
  expect(await added).toMatchObject({ committed: true });
  expect(events).toEqual([first]);
  // The file alone has it.
  const copy = join(dir, 'copy.db');
  copyFileSync(path, copy);
  const other = await open(copy);
  expect(await storedOf(new SqliteStore(other, loadGroups(other)), { run_id: 'run_0001' } as RunRecord)).toBe(first);
  expect(db.prepare('PRAGMA wal_checkpoint(PASSIVE)').get()).toMatchObject({ log: 0 });
  expect(await stored()).toBe(first);
  await store.close();
});

test('while the disk fails, writes fail and readers get nothing; then the same events are stored once', async () => {
  const log = new HeldLog();
  const { store, first, events, append: add, stored } = await openScene(log);
  log.failHere = EIO;
  const refused = expect(add(first)).rejects.toThrow('EIO');
  await log.end(EIO);
  await refused;
  await expect(add(first)).rejects.toThrow('EIO');
  await expect(store.createRun(newRun(2))).rejects.toThrow('EIO');
  expect({ events, stored: await stored(), run: await store.loadRun('run_0002') }).toEqual({
    events: [],
    stored: first - 1,
    run: null,
  });
  log.failHere = null;
  const [again, next] = [add(first), add(first + 1)];
  await log.end();
  expect(await Promise.all([again, next])).toMatchObject([{ committed: true }, { committed: true }]);
  expect({ events, stored: await stored() }).toEqual({ events: [first, first + 1], stored: first + 1 });
  // The group of the refused events is emptied by the next transaction and deleted by the one after it.
  const last = add(first + 2);
  await log.end();
  await last;
  await store.close();
  const db = await open();
  expect(await storedOf(new SqliteStore(db, loadGroups(db)), { run_id: 'run_0001' } as RunRecord)).toBe(first + 2);
  expect(db.prepare('SELECT COUNT(*) AS count FROM event_groups').get()).toEqual({ count: 2 });
});

test('a reader beside the writer keeps a failed log from being emptied: writes fail until it ends', async () => {
  const log = new HeldLog();
  const { store, first, append: add, stored } = await openScene(log);
  const reader = await open();
  reader.exec('BEGIN');
  reader.prepare('SELECT COUNT(*) FROM runs').get();
  const refused = expect(add(first)).rejects.toThrow('EIO');
  await log.end(EIO);
  await refused;
  reader.exec('COMMIT');
  const added = add(first);
  await log.end();
  expect(await added).toMatchObject({ committed: true });
  expect(await stored()).toBe(first);
  await store.close();
});

test('a process beside the writer syncs the log before it uses a new group, and only then', async () => {
  const { first, append: add } = await openScene(new WriteAheadLog(path));
  await add(first);
  const log = new HeldLog();
  const db = await open();
  const reader = new SqliteStore(db, null, { log });
  log.failHere = EIO;
  await expect(storedOf(reader, { run_id: 'run_0001' } as RunRecord)).rejects.toThrow('EIO');
  log.failHere = null;
  expect(await storedOf(reader, { run_id: 'run_0001' } as RunRecord)).toBe(first);
  log.failHere = EIO;
  expect(await storedOf(reader, { run_id: 'run_0001' } as RunRecord)).toBe(first);
});

describe('merges', () => {
  const EVENTS = 200;
  // Below the size at which a flush is a segment at once.
  const BYTES = 30 * 1024;
  // So many exceed MOST_RUN_BYTES.
  const FLUSHES = 17;

  interface Merged extends Scene {
    readonly run: RunRecord;
    readonly last: number;
  }

  // Appends so much that a merge is due; returns when its sync has begun.
  async function mergeBegins(log: HeldLog): Promise<Merged> {
    const scene = await openScene(log);
    let run = (await scene.store.loadRun('run_0001')) as RunRecord;
    for (let step = 0; step < FLUSHES; step += 1) {
      const seq = run.heads.rasp_seq + 1;
      const added = scene.store.append(change(run, { journal: largeFlush(seq) }));
      await log.end();
      expect(await added).toMatchObject({ committed: true });
      run = (await scene.store.loadRun('run_0001')) as RunRecord;
    }
    await log.untilBegun();
    expect(log.begun).toBe(FLUSHES + 1);
    return { ...scene, run, last: run.heads.rasp_seq };
  }

  function largeFlush(seq: number): JournalFlush {
    const { rasp, ...rest } = flush(seq, EVENTS, null, T0 + 1_000_000 + seq);
    const filled = rasp.bytes
      .toString()
      .split('\n')
      .map((line) => (line ? line.padEnd(BYTES / EVENTS) : ''))
      .join('\n');
    return { ...rest, rasp: { ...rasp, bytes: Buffer.from(filled) } };
  }

  test('another thread syncs a merge; meanwhile readers have every event once and no write joins it', async () => {
    const log = new HeldLog();
    const { db, store, run, last, append: add } = await mergeBegins(log);
    expect(segments(db)).toEqual({ merged: 1 });
    const all = async (): Promise<string> =>
      (await store.readJournal(run.run_id, 'rasp', { limit: 10_000 })).join('\n');
    const during = await all();
    const next = add(last + 1);
    for (let turn = 0; turn < 5; turn += 1) await immediate();
    expect((await store.loadRun(run.run_id))?.heads).toEqual(run.heads);
    expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
    // The merge.
    await log.end();
    // The flush that waited.
    await log.end();
    expect(await next).toMatchObject({ committed: true });
    expect((await all()).startsWith(`${during}\n`)).toBe(true);
    expect(during.split('\n')).toHaveLength(last);
    await store.close();
    const kept = await open();
    expect(await storedOf(new SqliteStore(kept, loadGroups(kept)), run)).toBe(last + 1);
  });

  test('after a failed sync of a merge, nothing is missing or doubled, and the run continues', async () => {
    const log = new HeldLog();
    const { db, store, run, last, append: add, stored } = await mergeBegins(log);
    log.failHere = EIO;
    await log.end(EIO);
    await expect(add(last + 1)).rejects.toThrow('EIO');
    expect(await stored()).toBe(last);
    log.failHere = null;
    const next = add(last + 1);
    await log.end();
    expect(await next).toMatchObject({ committed: true });
    expect(await stored()).toBe(last + 1);
    expect((await store.loadRun(run.run_id))?.heads.digest).toBe(await store.recomputeDigest(run.run_id));
    // Another change merges the rest of the run.
    await store.mergeAll();
    expect(await stored()).toBe(last + 1);
    expect(segments(db)).toEqual({ merged: 1 });
    await store.close();
    const kept = await open();
    const reopened = new SqliteStore(kept, loadGroups(kept));
    expect(await storedOf(reopened, run)).toBe(last + 1);
    expect(reopened.findGroupDamage()).toEqual([]);
  });

  test('after a power cut during the sync of a merge, everything is in the groups', async () => {
    const log = new HeldLog();
    const scene = await mergeBegins(log);
    // The disk has the log only up to the last sync that ended.
    const rows = await scene.stored();
    const copy = join(dir, 'cut.db');
    copyFileSync(path, copy);
    const wal = readFileSync(`${path}-wal`);
    // Cut within the frames of the merge: SQLite drops the incomplete transaction.
    writeFileSync(`${copy}-wal`, wal.subarray(0, wal.length - 100));
    const after = await open(copy);
    expect(segments(after)).toEqual({ merged: 0 });
    const kept = new SqliteStore(after, loadGroups(after));
    expect(await storedOf(kept, scene.run)).toBe(rows);
    expect(await kept.recomputeDigest(scene.run.run_id)).toBe(scene.run.heads.digest);
    await log.end();
    await scene.store.close();
  });
});

// The disk has what the files had when the last sync began that has ended, or when SQLite acknowledged a commit.
test('after a power cut at any moment, everything acknowledged is there', { timeout: 60_000 }, async () => {
  const by = chance(7);
  let images = 0;
  const save = (): string => {
    const image = join(dir, `image-${(images += 1)}.db`);
    copyFileSync(path, image);
    if (existsSync(`${path}-wal`)) copyFileSync(`${path}-wal`, `${image}-wal`);
    return image;
  };
  let disk = '';
  const db = await open();
  const log: LogSync = {
    sync: async () => {
      const image = save();
      for (let turns = by.below(4); turns > 0; turns -= 1) await immediate();
      disk = image;
    },
    syncHere: () => {},
    close: () => {},
  };
  const store = new SqliteStore(db, loadGroups(db), { log });
  const acknowledged = new Map<string, number>();
  const promised: { readonly image: string; readonly events: ReadonlyMap<string, number> }[] = [];
  // In the same tick as the acknowledgement: nothing was written since.
  const note = (runId: string, seq: number, isSynced: boolean): void => {
    if (isSynced) disk = save();
    acknowledged.set(runId, seq);
    promised.push({ image: disk, events: new Map(acknowledged) });
  };
  store.onCommitted(({ run_id: runId, journal, status }) =>
    note(runId, journal?.rasp.lastSeq ?? 0, status === 'queued'),
  );
  const converse = async (number: number): Promise<void> => {
    const { run } = (await store.createRun(newRun(number, { queue_limit: 100 }))) as { run: RunRecord };
    for (let seq = run.heads.rasp_seq + 1; seq < 14; seq += 1) {
      for (let turns = by.below(3); turns > 0; turns -= 1) await immediate();
      await append(store, run, seq);
    }
  };
  await Promise.all(Array.from({ length: 6 }, (_, index) => converse(index + 1)));
  expect(promised.length).toBeGreaterThan(60);
  for (const { image, events } of promised) {
    const copy = `${image}-copy`;
    for (const end of ['', '-wal']) if (existsSync(image + end)) copyFileSync(image + end, copy + end);
    const after = await open(copy);
    const kept = new SqliteStore(after, loadGroups(after));
    for (const [runId, seq] of events)
      expect(await storedOf(kept, { run_id: runId } as RunRecord), `${image} ${runId}`).toBeGreaterThanOrEqual(seq);
    after.close();
  }
});

function segments(db: Database): unknown {
  return db.prepare(`SELECT COUNT(*) AS merged FROM segments WHERE flushes IS NOT NULL`).get();
}
