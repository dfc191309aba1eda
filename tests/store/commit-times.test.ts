// Another thread syncs small flushes only on a slow disk.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CommitTimes } from '../../src/store/sqlite/commits/commit-times.js';
import { Writes } from '../../src/store/sqlite/commits/writes.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';

function timesOf(...ms: readonly number[]): CommitTimes {
  const times = new CommitTimes();
  for (const each of ms) times.add(each);
  return times;
}

const many = (count: number, ms: number): number[] => Array.from({ length: count }, () => ms);

describe('the disk is slow', () => {
  test('only if each of the last commits took long: one fast commit is enough proof that it is not', () => {
    expect(timesOf(...many(8, 10)).areSlow).toBe(true);
    expect(timesOf(...many(7, 10), 0.5).areSlow).toBe(false);
    expect(timesOf(0.5, ...many(7, 10)).areSlow).toBe(false);
    expect(timesOf(0.5, ...many(8, 10)).areSlow).toBe(true);
  });

  test('only after enough commits were measured', () => {
    expect(timesOf().areSlow).toBe(false);
    expect(timesOf(...many(7, 10)).areSlow).toBe(false);
  });

  test('until one commit in a hundred, which is measured again, is fast', () => {
    const times = timesOf(...many(8, 10));
    const answers = Array.from({ length: 101 }, () => times.areSlow);
    expect(answers.indexOf(false)).toBe(100);
    times.add(10);
    expect(times.areSlow).toBe(true);
    times.add(0.5);
    expect(times.areSlow).toBe(false);
  });
});

class CountedTimes extends CommitTimes {
  measured = 0;

  constructor(readonly isSlow: boolean) {
    super();
  }

  override add(): void {
    this.measured += 1;
  }

  override get areSlow(): boolean {
    return this.isSlow;
  }
}

describe('writes that another thread may sync', () => {
  let folder: string;
  let db: Database;
  let syncs: number;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'parley-commit-times-'));
    db = await openDatabase(join(folder, 'parley.db'));
    makeDurable(db);
    db.exec('CREATE TABLE t (n INTEGER)');
    syncs = 0;
  });
  afterEach(() => {
    db.close();
    rmSync(folder, { recursive: true });
  });

  const log = {
    sync: async () => void (syncs += 1),
    syncHere: () => {},
    close: () => {},
  };
  const insert = (writes: Writes, bytes = 10): Promise<unknown> =>
    writes.add(() => db.exec('INSERT INTO t VALUES (1)'), undefined, { bytes, later: true });

  test('are synced by SQLite on a fast disk, and by the thread on a slow one', async () => {
    const fast = new Writes(db, { log, times: timesOf(...many(8, 0.1)) });
    await insert(fast);
    expect(syncs).toBe(0);
    const slow = new Writes(db, { log, times: timesOf(...many(8, 10)) });
    await insert(slow);
    expect(syncs).toBe(1);
  });

  test('are measured only when SQLite syncs them', async () => {
    const times = new CountedTimes(true);
    const writes = new Writes(db, { log, times });
    await insert(writes);
    expect([times.measured, syncs]).toEqual([0, 1]);
    // Another thread must not sync this one.
    await writes.add(() => db.exec('INSERT INTO t VALUES (1)'));
    expect([times.measured, syncs]).toEqual([1, 1]);
  });

  test('do not wait for the thread while more is queued than one transaction takes', async () => {
    const writes = new Writes(db, { log });
    await Promise.all(Array.from({ length: 30 }, () => insert(writes, 100 * 1024)));
    // Three transactions: only the last has nothing behind it.
    expect(syncs).toBe(1);
    expect(db.prepare('SELECT COUNT(*) AS n FROM t').get()).toEqual({ n: 30 });
  });
});
