// After a power cut at any moment, everything acknowledged is there, and the store works.
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { RunRecord } from '../../src/store/store.js';
import { chance } from '../support/torture.js';
import { T0, change, flush, newRun } from './conformance.js';

const RUNS = 6;
const FLUSHES = 12;

let dir: string;
let path: string;
const databases = new Set<Database>();
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-power-cut-'));
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

interface Moment {
  // Copies of the database and its log right after an acknowledgement.
  readonly image: string;
  readonly logBytes: number;
  readonly acknowledged: ReadonlyMap<string, number>;
}

test('everything acknowledged is there, whatever part of the next write reached the disk', async () => {
  const by = chance(7);
  const db = await open();
  const store = new SqliteStore(db, loadGroups(db));
  const moments: Moment[] = [];
  const acknowledged = new Map<string, number>();
  store.onCommitted(({ run_id: runId, journal }) => {
    const image = join(dir, `image-${moments.length}.db`);
    copyFileSync(path, image);
    copyFileSync(`${path}-wal`, `${image}-wal`);
    acknowledged.set(runId, journal?.rasp.lastSeq ?? 0);
    moments.push({ image, logBytes: statSync(`${image}-wal`).size, acknowledged: new Map(acknowledged) });
  });
  const converse = async (number: number): Promise<void> => {
    const { run } = (await store.createRun(newRun(number, { queue_limit: 100 }))) as { run: RunRecord };
    for (let seq = run.heads.rasp_seq + 1; seq <= FLUSHES; seq += 1) {
      for (let turns = by.below(3); turns > 0; turns -= 1) await new Promise((resolve) => setImmediate(resolve));
      const heads = { ...run.heads, rasp_seq: seq - 1 };
      await store.append(change({ ...run, heads }, { journal: flush(seq, 1, null, T0 + 1_000_000 + seq) }));
    }
  };
  await Promise.all(Array.from({ length: RUNS }, (_, index) => converse(index + 1)));
  expect(moments.length).toBeGreaterThan(60);
  let torn = 0;
  for (const [index, { image, logBytes, acknowledged: events }] of moments.entries()) {
    const next = moments[index + 1];
    // A part of what was written next, cut anywhere.
    if (next && next.logBytes > logBytes) {
      const log = readFileSync(`${next.image}-wal`);
      writeFileSync(`${image}-wal`, log.subarray(0, logBytes + by.below(next.logBytes - logBytes)));
      torn += 1;
    }
    const after = await open(image);
    const kept = new SqliteStore(after, loadGroups(after));
    for (const [runId, seq] of events) {
      const stored = await kept.readJournal(runId, 'rasp', { limit: 10_000 });
      expect(stored.length, `${image} ${runId}`).toBeGreaterThanOrEqual(seq);
      expect(await kept.recomputeDigest(runId)).toBe((await kept.loadRun(runId))?.heads.digest);
    }
    expect(kept.findGroupDamage()).toEqual([]);
    after.close();
    for (const end of ['', '-wal', '-shm']) if (existsSync(image + end)) rmSync(image + end);
  }
  expect(torn).toBeGreaterThan(10);
});
