// Compacting changes how journals are stored, and nothing that a reader, a cursor or a digest can notice.
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { array, assert, asyncProperty, constantFrom } from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FIRST_DIGEST, nextDigest } from '../../src/store/digest.js';
import { openDataDir, openForReading, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { NEWEST_VERSION } from '../../src/store/sqlite/migrate.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { compactDataDir, type Compacted, type CompactOptions } from '../../src/store/sqlite/space/compact.js';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { FIRST_SEGMENT, type JournalFlush, type RunRecord, type Store } from '../../src/store/store.js';
import { refusal } from '../support/command-bench.js';
import { copyDatabase, dump, VERSIONS } from '../support/old-databases.js';
import { runs } from '../support/runs.js';
import { T0, change, flush, newRun, type RowEdit } from './conformance.js';

const WRITER = { pid: process.pid };
const ENOUGH: CompactOptions = { checkSpace: () => {}, onPacked: () => {} };

let dir: string;
let path: string;
let opened: DataDir | null;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-compact-'));
  path = join(dir, 'parley.db');
  opened = null;
});
afterEach(async () => {
  await opened?.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(): Promise<SqliteStore> {
  opened = await openDataDir(dir, WRITER);
  return opened.store as SqliteStore;
}

async function close(): Promise<void> {
  await opened?.close();
  opened = null;
}

async function compact(options: Partial<CompactOptions> = {}): Promise<Compacted> {
  await close();
  const compacted = await compactDataDir(dir, WRITER, { ...ENOUGH, ...options });
  if (!compacted) throw new Error('no database');
  return compacted;
}

async function query<Row>(sql: string): Promise<Row[]> {
  const db = await openDatabase(path, { readOnly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

async function execute(sql: string): Promise<void> {
  const db = await openDatabase(path);
  db.exec(sql);
  db.close();
}

const idOf = (number: number): string => `run_${String(number).padStart(4, '0')}`;

async function append(store: Store, runId: string, edit: RowEdit): Promise<void> {
  const run = (await store.loadRun(runId)) as RunRecord;
  const outcome = await store.append(change(run, edit));
  if (!outcome.committed) throw new Error(outcome.reason);
}

async function next(store: Store, runId: string, count: number): Promise<JournalFlush> {
  const { heads } = (await store.loadRun(runId)) as RunRecord;
  return flush(heads.rasp_seq + 1, count, count % 3 === 0 ? null : heads.fcmp_seq + 1, Math.max(heads.ts, T0) + 1);
}

// A run with small and large flushes, some with a change of its state.
async function createLife(store: Store, number: number, ends = true): Promise<void> {
  const id = idOf(number);
  await store.createRun(newRun(number));
  for (const count of [1, 5, 2, 40, 700, 3])
    await append(store, id, {
      journal: await next(store, id, count),
      ...(count === 2 && { set: { status: 'running' } }),
    });
  if (ends) await append(store, id, { journal: await next(store, id, 4), set: { status: 'failed' } });
  else await append(store, id, { journal: await next(store, id, 4) });
}

// Everything that a reader can notice, the flushes and their cursors included.
async function readAll(store: Store, runId: string) {
  const run = (await store.loadRun(runId)) as RunRecord;
  const journals = [];
  for (const protocol of ['rasp', 'fcmp'] as const) {
    const flushes: string[] = [];
    let digest = FIRST_DIGEST;
    for (let after = FIRST_SEGMENT; ;) {
      const page = await store.readSegments(runId, protocol, after, 1500);
      for (const { body, seq_from: from, seq_to: to } of page) {
        flushes.push(`${from}-${to} ${Buffer.from(body).toString()}`);
        digest = nextDigest(digest, body);
        after = from;
      }
      if (page.length === 0) break;
    }
    if (protocol === 'rasp') expect(digest).toBe(run.heads.digest);
    const lines: string[] = [];
    for (let seq = 0; ;) {
      const page = await store.readLines(runId, protocol, seq, 2000);
      if (!page) break;
      lines.push(Buffer.from(page.bytes).toString());
      seq = page.lastSeq;
    }
    journals.push({ flushes, text: lines.join(''), texts: await store.readJournal(runId, protocol, { limit: 1e6 }) });
  }
  expect(await store.recomputeDigest(runId)).toBe(run.heads.digest);
  return { run, journals };
}

const storedBytes = async (): Promise<number> =>
  (await query<{ bytes: number }>('SELECT SUM(length(body)) AS bytes FROM segments'))[0]?.bytes ?? 0;
const countRows = async (): Promise<number> =>
  (await query<{ count: number }>('SELECT COUNT(*) AS count FROM segments'))[0]?.count ?? 0;

const rowsOf = (run: number, protocols = "'rasp', 'fcmp'") =>
  query(`SELECT * FROM segments WHERE run_id = '${idOf(run)}' AND protocol IN (${protocols}) ORDER BY seq_from`);

test('journals are in as few rows as possible, with the same events, flushes, cursors and digests', async () => {
  const store = await open();
  for (let number = 1; number <= 20; number += 1) await createLife(store, number, number % 2 === 0);
  const before = await Promise.all(Array.from({ length: 20 }, (_, index) => readAll(store, idOf(index + 1))));
  await close();
  expect(await query('SELECT group_id FROM event_groups')).not.toEqual([]);
  const rows = await countRows();
  const stored = await storedBytes();
  const seen: number[] = [];
  const compacted = await compact({ onPacked: (done, total) => void seen.push(done / total) });
  expect(compacted).toMatchObject({ damaged: [], isHeldUp: false });
  expect(seen).toEqual(Array.from({ length: 20 }, (_, index) => (index + 1) / 20));
  expect(compacted.after).toBeLessThan(compacted.before);
  expect(compacted.after).toBe(statSync(path).size);
  expect(await storedBytes()).toBeLessThan(stored / 2);
  expect(await countRows()).toBe(40);
  expect(rows).toBeGreaterThan(150);
  expect(await query('SELECT body FROM event_groups WHERE length(body) > 0')).toEqual([]);
  const again = await open();
  for (const [index, each] of before.entries()) expect(await readAll(again, idOf(index + 1))).toEqual(each);
  // The runs continue.
  await createLife(again, 21);
  await append(again, idOf(1), { journal: await next(again, idOf(1), 3) });
  expect((await readAll(again, idOf(1))).run.heads.rasp_seq).toBe(760);
});

test('compacting again changes nothing', async () => {
  const store = await open();
  for (let number = 1; number <= 5; number += 1) await createLife(store, number);
  await compact();
  const first = await dump(path);
  expect(first).not.toBeNull();
  expect(await compact()).toMatchObject({ damaged: [] });
  expect(await dump(path)).toBe(first);
});

test('whatever the sizes of the flushes are, no reader can tell the difference', async () => {
  const step = constantFrom(1, 2, 3, 60, 400, 900, 6000);
  await assert(
    asyncProperty(array(step, { minLength: 1, maxLength: 12 }), async (counts) => {
      rmSync(dir, { recursive: true, force: true });
      const store = await open();
      await store.createRun(newRun(1));
      for (const count of counts)
        await append(store, idOf(1), {
          journal: await next(store, idOf(1), count),
          ...(count === 2 && { set: { status: 'running' } }),
        });
      const before = await readAll(store, idOf(1));
      await compact();
      const sizes = await query<{ plain: number }>(
        `SELECT iif(packed > 0, packed, length(body)) AS plain FROM segments WHERE protocol = 'rasp' ORDER BY seq_from`,
      );
      // No two of them fit into one.
      for (const [index, { plain }] of sizes.entries())
        if (index > 0) expect(plain + (sizes[index - 1]?.plain ?? 0)).toBeGreaterThan(512 * 1024);
      expect(await readAll(await open(), idOf(1))).toEqual(before);
      await close();
    }),
    { numRuns: runs(40) },
  );
});

test('a process that reads meanwhile sees the same journal before and after', async () => {
  const store = await open();
  await createLife(store, 1);
  const before = await readAll(store, idOf(1));
  await close();
  const reader = await openForReading(dir);
  if (!reader) throw new Error('no reader');
  expect(await readAll(reader.store, idOf(1))).toEqual(before);
  expect(await reader.store.readLines(idOf(1), 'rasp', 60, 100)).not.toBeNull();
  expect(await compact()).toMatchObject({ isHeldUp: false });
  expect(await reader.store.readLines(idOf(1), 'rasp', 60, 100)).not.toBeNull();
  expect(await readAll(reader.store, idOf(1))).toEqual(before);
  await reader.close();
});

describe('damaged segments', () => {
  const CASES = [
    ['a body that is cut off', `UPDATE segments SET body = substr(body, 1, length(body) - 3), packed = 0`],
    ['a body that cannot be unpacked', `UPDATE segments SET body = x'00112233', packed = 5000`],
    ['a body that is text', `UPDATE segments SET body = 'text', packed = 0`],
    ['other ends of flushes', `UPDATE segments SET flushes = '[1,2000]'`],
    ['a gap before it', `UPDATE segments SET seq_from = seq_from + 1`],
    ['a number that is too large', `UPDATE segments SET seq_to = 9223372036854775807`],
  ] as const;

  test.each(CASES)(
    '%s: the rows stay as they are and the run is named; others are packed',
    async (_what, statement) => {
      const store = await open();
      for (const number of [1, 2, 3]) await createLife(store, number);
      const sound = await readAll(store, idOf(3));
      await close();
      await execute(`${statement} WHERE rowid = (SELECT rowid FROM segments
        WHERE run_id = '${idOf(2)}' AND protocol = 'rasp' ORDER BY seq_from LIMIT 1 OFFSET 2)`);
      const before = await rowsOf(2, "'rasp'");
      expect((await compact()).damaged).toEqual([idOf(2)]);
      expect(await rowsOf(2, "'rasp'")).toEqual(before);
      expect(await rowsOf(1)).toHaveLength(2);
      expect(await readAll(await open(), idOf(3))).toEqual(sound);
    },
  );

  test('events that were altered stay as they are, so that verify still finds them', async () => {
    const store = await open();
    await createLife(store, 1);
    await close();
    await execute(`UPDATE segments SET body = replace(CAST(body AS TEXT), 'é', 'è') WHERE packed = 0 AND seq_from = 1`);
    await execute(`UPDATE segments SET body = CAST(body AS BLOB)`);
    expect((await compact()).damaged).toEqual([]);
    const again = await open();
    const run = (await again.loadRun(idOf(1))) as RunRecord;
    expect(await again.recomputeDigest(idOf(1))).not.toBe(run.heads.digest);
    expect(await again.readJournal(idOf(1), 'rasp', { limit: 1 })).toEqual([expect.stringContaining('è') as string]);
  });

  test('recent flushes that cannot be merged stay in their group', async () => {
    const store = await open();
    for (const number of [1, 2]) await createLife(store, number, false);
    await close();
    // In the place of the first recent event.
    const [{ rasp_seq: seq } = { rasp_seq: 0 }] = await query<{ rasp_seq: number }>(
      `SELECT rasp_seq FROM runs WHERE run_id = '${idOf(2)}'`,
    );
    await execute(`INSERT INTO segments (run_id, protocol, seq_from, seq_to, ts_from, ts_to, body)
      VALUES ('${idOf(2)}', 'rasp', ${seq + 1}, ${seq + 1}, 0, 0, x'0a')`);
    const groups = await query<{ bytes: number }>('SELECT length(body) AS bytes FROM event_groups');
    expect((await compact()).damaged).toEqual([idOf(2)]);
    expect(await query('SELECT length(body) AS bytes FROM event_groups')).toEqual(groups.slice(-2));
    expect((await readAll(await open(), idOf(1))).run.heads.rasp_seq).toBe(757);
  });
});

describe('refusals', () => {
  test('while another process writes to the directory, and without a database', async () => {
    expect(await compactDataDir(dir, WRITER, ENOUGH)).toBeNull();
    await open();
    await refusal(compactDataDir(dir, WRITER, ENOUGH), 'DATA_DIR_IN_USE');
  });

  test('of a database whose file is damaged, which stays as it is', async () => {
    const store = await open();
    for (const number of [1, 2]) await createLife(store, number);
    await close();
    const [{ page } = { page: 0 }] = await query<{ page: number }>(
      `SELECT rootpage AS page FROM sqlite_master WHERE name = 'segments'`,
    );
    await execute('PRAGMA wal_checkpoint(TRUNCATE)');
    const file = openSync(path, 'r+');
    writeSync(file, Buffer.alloc(1000, 0xff), 0, 1000, (page - 1) * 8192);
    closeSync(file);
    const before = readFileSync(path);
    expect(await refusal(compact(), 'DATA_DIR_UNUSABLE')).toContain('damaged');
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  test('without enough space nothing is changed, and the lock is released', async () => {
    const store = await open();
    for (const number of [1, 2]) await createLife(store, number);
    await close();
    const before = await dump(path);
    let needed = 0;
    const full = (bytes: number): void => {
      needed = bytes;
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    };
    await refusal(compact({ checkSpace: full }), 'STORE_UNAVAILABLE');
    expect(needed).toBeGreaterThanOrEqual(2 * (await usedBytes()));
    expect(await dump(path)).toBe(before);
    await compact();
  });

  test('when the disk becomes full meanwhile, everything is there, and the next call completes it', async () => {
    const store = await open();
    for (let number = 1; number <= 8; number += 1) await createLife(store, number);
    const before = await readAll(store, idOf(8));
    for (let at = 1; at <= 8; at += 1) {
      const full = (done: number): void => {
        if (done === at) throw new Error('database or disk is full');
      };
      await refusal(compact({ onPacked: full }), 'STORE_UNAVAILABLE');
      expect(await readAll(await open(), idOf(8))).toEqual(before);
    }
    expect((await compact()).damaged).toEqual([]);
    expect(await countRows()).toBe(16);
  });
});

async function usedBytes(): Promise<number> {
  const [{ used } = { used: 0 }] = await query<{ used: number }>(
    `SELECT (page_count - freelist_count) * page_size AS used
      FROM pragma_page_count, pragma_freelist_count, pragma_page_size`,
  );
  return used;
}

test.each(VERSIONS)('a database of version %i is migrated, and can return free pages afterwards', async (version) => {
  await copyDatabase(version, path);
  expect(await query('PRAGMA auto_vacuum')).toEqual([{ auto_vacuum: 0 }]);
  const compacted = await compact();
  expect(compacted.damaged).toEqual([]);
  expect(await query('PRAGMA auto_vacuum')).toEqual([{ auto_vacuum: 2 }]);
  expect(await query('PRAGMA user_version')).toEqual([{ user_version: NEWEST_VERSION }]);
  expect(await query('PRAGMA freelist_count')).toEqual([{ freelist_count: 0 }]);
  const store = await open();
  for (const id of await store.listRunIds({ limit: 1000 })) {
    const run = (await store.loadRun(id)) as RunRecord;
    expect(await store.recomputeDigest(id)).toBe(run.heads.digest);
  }
});
