// Small flushes are merged as fast as they come, so that what a start has to read stays bounded.
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { MIGRATIONS } from '../../src/store/sqlite/migrations.js';
import { openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { RunRecord } from '../../src/store/store.js';
import { T0, change, newRun } from './conformance.js';

const MIB = 1024 * 1024;
const RUNS = 200;
const FLUSHES = 20;
const FLUSH_BYTES = 16 * 1024;

let dir: string;
let db: Database;
beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-recent-'));
  db = await openDatabase(join(dir, 'parley.db'));
  // Nothing is lost here, so the disk need not be waited for.
  db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF');
  migrate(db, MIGRATIONS);
});
afterEach(() => {
  if (db.isOpen) db.close();
  rmSync(dir, { recursive: true });
});

test('flushes of many busy runs never exceed the limit by more than a few transactions', async () => {
  const store = new SqliteStore(db, loadGroups(db));
  const groupBytes = db.prepare('SELECT sum(length(body)) AS bytes FROM event_groups');
  let most = 0;
  let total = 0;
  store.onCommitted(({ journal }) => {
    total += journal?.rasp.bytes.length ?? 0;
    most = Math.max(most, (groupBytes.get() as { bytes: number | null }).bytes ?? 0);
  });
  const converse = async (number: number): Promise<void> => {
    const { run } = (await store.createRun(newRun(number, { queue_limit: RUNS + 1 }))) as { run: RunRecord };
    for (let seq = run.heads.rasp_seq + 1; seq <= FLUSHES; seq += 1) {
      // Text that cannot be compressed.
      const text = randomBytes(FLUSH_BYTES / 2).toString('hex');
      const rasp = { firstSeq: seq, lastSeq: seq, bytes: Buffer.from(`{"seq":${seq},"text":"${text}"}\n`) };
      const journal = { rasp, fcmp: null, firstTs: T0 + 1_000_000 + seq, lastTs: T0 + 1_000_000 + seq };
      const outcome = await store.append(change({ ...run, heads: { ...run.heads, rasp_seq: seq - 1 } }, { journal }));
      expect(outcome.committed).toBe(true);
    }
  };
  await Promise.all(Array.from({ length: RUNS }, (_, index) => converse(index + 1)));
  expect(total).toBeGreaterThan(50 * MIB);
  expect(most).toBeLessThan(24 * MIB);
});
