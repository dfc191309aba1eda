// Small flushes are stored in groups and merged into segments later. No reader can tell the difference: in this
// process, in another one, or after a restart.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { array, assert, asyncProperty, constantFrom, integer, tuple } from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DamagedDataError } from '../../src/kernel/stored-json.js';
import { FIRST_DIGEST, nextDigest } from '../../src/store/digest.js';
import { openDataDir, openForReading, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { FIRST_SEGMENT, type JournalFlush, type RunRecord, type Store } from '../../src/store/store.js';
import { T0, change, flush, newRun, type RowEdit } from './conformance.js';
import { runs } from '../support/runs.js';

let dir: string;
let opened: DataDir | null;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-recent-'));
  opened = null;
});
afterEach(async () => {
  await opened?.close();
  rmSync(dir, { recursive: true, force: true });
});

async function open(): Promise<SqliteStore> {
  opened = await openDataDir(dir, { pid: process.pid });
  return opened.store as SqliteStore;
}

async function close(): Promise<void> {
  await opened?.close();
  opened = null;
}

async function query<Row>(sql: string): Promise<Row[]> {
  const db = await openDatabase(join(dir, 'parley.db'), { readOnly: true });
  try {
    return db.prepare(sql).all() as Row[];
  } finally {
    db.close();
  }
}

async function execute(sql: string): Promise<void> {
  const db = await openDatabase(join(dir, 'parley.db'));
  db.exec(sql);
  db.close();
}

const countSegments = async (): Promise<number> =>
  (await query<{ count: number }>('SELECT COUNT(*) AS count FROM segments'))[0]?.count ?? 0;
const groupIds = async (): Promise<number[]> =>
  (await query<{ group_id: number }>('SELECT group_id FROM event_groups ORDER BY group_id')).map((row) => row.group_id);

async function create(store: Store, number: number): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

// Appends events to the run as it is now.
async function append(store: Store, runId: string, edit: RowEdit = {}): Promise<RunRecord> {
  const run = (await store.loadRun(runId)) as RunRecord;
  const outcome = await store.append(change(run, edit));
  if (!outcome.committed) throw new Error(outcome.reason);
  return (await store.loadRun(runId)) as RunRecord;
}

const next = ({ heads }: RunRecord, count = 2): JournalFlush =>
  flush(heads.rasp_seq + 1, count, heads.fcmp_seq + 1, Math.max(heads.ts, T0) + 1);

const large = (run: RunRecord): JournalFlush => next(run, 250);

async function storeThree(): Promise<void> {
  const store = await open();
  for (const number of [1, 2]) await create(store, number);
  for (const id of ['run_0001', 'run_0002', 'run_0001'])
    await append(store, id, { journal: next((await store.loadRun(id)) as RunRecord) });
  await close();
}

// Everything that a reader can know of a journal, in four ways that must agree.
async function readAll(store: Store, run: RunRecord) {
  const texts = await store.readJournal(run.run_id, 'rasp', { limit: 1e6 });
  const lines: string[] = [];
  for (let seq = 0; ;) {
    const page = await store.readLines(run.run_id, 'rasp', seq, 300);
    if (!page) break;
    expect(page.firstSeq).toBe(seq + 1);
    lines.push(...Buffer.from(page.bytes).toString().trimEnd().split('\n'));
    seq = page.lastSeq;
  }
  const flushes: string[] = [];
  let digest = FIRST_DIGEST;
  for (let after = FIRST_SEGMENT; ;) {
    const page = await store.readSegments(run.run_id, 'rasp', after, 500);
    for (const { body, seq_from: from, seq_to: to } of page) {
      flushes.push(`${from}-${to}`);
      digest = nextDigest(digest, body);
      after = from;
    }
    if (page.length === 0) break;
  }
  expect(lines).toEqual(texts);
  expect(digest).toBe(run.heads.digest);
  expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
  expect(texts.map((text) => (JSON.parse(text) as { seq: number }).seq)).toEqual(
    Array.from({ length: run.heads.rasp_seq }, (_, index) => index + 1),
  );
  // A read within bounds finds the same, wherever its bounds are.
  for (const toSeq of [1, 2, 4, texts.length - 1, texts.length])
    expect(await store.readJournal(run.run_id, 'rasp', { toSeq, limit: 1e6 })).toEqual(texts.slice(0, toSeq));
  for (const fromSeq of [2, 3, texts.length]) {
    expect(await store.readJournal(run.run_id, 'rasp', { fromSeq, limit: 1e6 })).toEqual(texts.slice(fromSeq - 1));
    const one = await store.readJournal(run.run_id, 'rasp', { fromSeq, toSeq: fromSeq, limit: 1e6 });
    expect(one).toEqual(texts.slice(fromSeq - 1, fromSeq));
  }
  const times = texts.map((text) => Date.parse((JSON.parse(text) as { ts: string }).ts));
  for (const ts of [times[0], times[times.length >> 1], times.at(-1)] as number[]) {
    const before = texts.filter((_, index) => (times[index] as number) <= ts);
    expect(await store.readJournal(run.run_id, 'rasp', { toTs: ts, limit: 1e6 })).toEqual(before);
    const after = texts.filter((_, index) => (times[index] as number) >= ts);
    expect(await store.readJournal(run.run_id, 'rasp', { fromTs: ts, limit: 1e6 })).toEqual(after);
  }
  const fcmp = await store.readJournal(run.run_id, 'fcmp', { limit: 1e6 });
  expect(fcmp).toHaveLength(run.heads.fcmp_seq);
  return { run, texts, fcmp, flushes };
}

test('the small flushes of one tick are one row, for any number of runs, and no other row changes', async () => {
  const store = await open();
  const runs = [await create(store, 1), await create(store, 2), await create(store, 3)];
  const segments = await countSegments();
  const rows = await query('SELECT * FROM runs');
  const outcomes = await Promise.all(runs.map((run) => store.append(change(run, { journal: next(run) }))));
  expect(outcomes.map(({ committed }) => committed)).toEqual([true, true, true]);
  expect(await groupIds()).toHaveLength(1);
  expect(await countSegments()).toBe(segments);
  expect(await query('SELECT * FROM runs')).toEqual(rows);
  for (const { run_id: id } of runs)
    expect((await store.loadRun(id))?.heads).toMatchObject({ rasp_seq: 4, fcmp_seq: 4 });
  expect((await store.summaries.listRuns({ limit: 9 })).map(({ heads }) => heads.rasp_seq)).toEqual([4, 4, 4]);
  expect((await store.listRuns({ limit: 9 })).map(({ updated_at: at }) => at)).toEqual([
    T0 + 5000,
    T0 + 5000,
    T0 + 5000,
  ]);
});

test('a change of the run merges its flushes in the same transaction, and leaves those of other runs', async () => {
  const store = await open();
  for (const number of [1, 2]) await create(store, number);
  for (const id of ['run_0001', 'run_0002', 'run_0001'])
    await append(store, id, { journal: next((await store.loadRun(id)) as RunRecord) });
  const before = await readAll(store, (await store.loadRun('run_0001')) as RunRecord);
  const run = await append(store, 'run_0001', { set: { status: 'failed' } });
  expect((await readAll(store, run)).flushes).toEqual(before.flushes);
  const segments = await query<{ flushes: string }>(
    `SELECT flushes FROM segments WHERE run_id = 'run_0001' AND protocol = 'rasp' ORDER BY seq_from`,
  );
  expect(segments.map(({ flushes }) => flushes)).toEqual([null, '[2,2]']);
  expect(await groupIds()).toEqual([2, 3]);
  expect((await readAll(store, (await store.loadRun('run_0002')) as RunRecord)).flushes).toEqual(['1-2', '3-4']);
});

test('another process sees each flush as soon as it is stored, and the same after it was merged', async () => {
  const store = await open();
  let run = await create(store, 1);
  const reader = await openForReading(dir);
  if (!reader) throw new Error('no reader');
  for (let step = 0; step < 12; step += 1) {
    run = await append(store, 'run_0001', { journal: next(run) });
    if (step % 5 === 4) await store.mergeAll();
    expect(await reader.store.loadRun('run_0001')).toEqual(run);
    expect((await readAll(reader.store, run)).texts).toHaveLength(run.heads.rasp_seq);
  }
  await reader.close();
});

test('a cursor within a merged segment continues with the next flush', async () => {
  const store = await open();
  let run = await create(store, 1);
  for (let step = 0; step < 4; step += 1) run = await append(store, 'run_0001', { journal: next(run) });
  const [first] = await store.readSegments('run_0001', 'rasp', 4, 1);
  expect(first).toMatchObject({ seq_from: 5, seq_to: 6 });
  await store.mergeAll();
  const rest = await store.readSegments('run_0001', 'rasp', first?.seq_from ?? 0, 1e6);
  expect(rest.map(({ seq_from: from, seq_to: to }) => [from, to])).toEqual([
    [7, 8],
    [9, 10],
  ]);
});

test('recent flushes survive a restart, and the next ones continue them', async () => {
  let store = await open();
  let run = await create(store, 1);
  for (let step = 0; step < 3; step += 1) run = await append(store, 'run_0001', { journal: next(run) });
  await close();
  store = await open();
  expect(await store.loadRun('run_0001')).toEqual(run);
  run = await append(store, 'run_0001', { journal: next(run) });
  expect((await readAll(store, run)).flushes).toEqual(['1-2', '3-4', '5-6', '7-8', '9-10']);
});

test('numbers of groups are never used again, so that a reader misses none', async () => {
  let store = await open();
  let run = await create(store, 1);
  const reader = await openForReading(dir);
  for (let round = 0; round < 3; round += 1) {
    run = await append(store, 'run_0001', { journal: next(run) });
    await store.mergeAll();
    expect(await reader?.store.loadRun('run_0001')).toEqual(run);
    await close();
    store = await open();
    expect(await groupIds()).toEqual([round + 1]);
  }
  await reader?.close();
});

describe('limits', () => {
  test('a flush that is large enough to be compressed is a segment at once', async () => {
    const store = await open();
    const run = await create(store, 1);
    await append(store, 'run_0001', { journal: next(run, 600) });
    expect(await groupIds()).toEqual([]);
    expect(await countSegments()).toBe(4);
  });

  test('the flushes of a run that make a good segment are merged, compressed', async () => {
    const store = await open();
    let run = await create(store, 1);
    for (let step = 0; step < 24; step += 1) run = await append(store, 'run_0001', { journal: large(run) });
    const rows = await query<{ bytes: number; packed: number }>(
      `SELECT length(body) AS bytes, packed FROM segments WHERE seq_from > 1 AND protocol = 'rasp'`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { bytes, packed } of rows) {
      expect(packed).toBeLessThanOrEqual(512 * 1024);
      expect(bytes).toBeLessThan(packed / 4);
    }
    expect((await readAll(store, run)).flushes).toHaveLength(25);
  });

  test('the number of groups is bounded: the oldest flushes are merged', async () => {
    const db = await openDatabase(':memory:');
    migrate(db);
    const store = new SqliteStore(db, loadGroups(db));
    for (let number = 1; number <= 40; number += 1) await create(store, number);
    for (let step = 0; step < 1100; step += 1) {
      const id = `run_00${String((step % 40) + 1).padStart(2, '0')}`;
      await append(store, id, { journal: next((await store.loadRun(id)) as RunRecord, 1) });
    }
    const groups = db.prepare('SELECT group_id AS id FROM event_groups ORDER BY group_id').all() as { id: number }[];
    expect(groups.length).toBeLessThanOrEqual(1025);
    expect(groups[0]?.id).toBeGreaterThan(200);
    for (const run of await store.listRuns({ limit: 99 })) await readAll(store, run);
    await store.close();
  });
});

// A word of the first flush of run_0001 only: SQL literals.
const FIRST_TEXT = `'"text":"é 漢字 \u2028 3"}' || char(10) || '{"seq":4,"ts":"2026-11-15T12:00:00.004Z"'`;
const OTHER_TEXT = FIRST_TEXT.replace('漢字', '字漢');

describe('damage', () => {
  test.each([
    ['cut off', `UPDATE event_groups SET body = substr(body, 1, 20) WHERE group_id = 1`],
    ['empty', `UPDATE event_groups SET body = x'7b7d0a' WHERE group_id = 1`],
    ['packed with a wrong size', `UPDATE event_groups SET packed = 77 WHERE group_id = 1`],
    [
      'changed in its text',
      `UPDATE event_groups SET body = CAST(replace(CAST(body AS TEXT), '漢', '字') AS BLOB) WHERE group_id = 1`,
    ],
  ])('a group that is %s is reported and kept, and the other runs are complete', async (_what, statement) => {
    await storeThree();
    await execute(statement);
    const store = await open();
    expect(
      store
        .findGroupDamage()
        .map(({ text }) => text)
        .join('\n'),
    ).toContain('group 1 of recent events');
    const damaged = await readAll(store, (await store.loadRun('run_0001')) as RunRecord);
    expect(damaged.run.heads.rasp_seq).toBe(2);
    const whole = await readAll(store, (await store.loadRun('run_0002')) as RunRecord);
    expect(whole.run.heads.rasp_seq).toBe(4);
    await append(store, 'run_0001', { journal: next(damaged.run) });
    await store.mergeAll();
    expect(await groupIds()).toContain(1);
  });

  test('a group with a damaged and a whole flush stays, and another process reads what the writer reads', async () => {
    let store = await open();
    const [first, second] = [await create(store, 1), await create(store, 2)];
    await Promise.all([first, second].map((run) => store.append(change(run, { journal: next(run) }))));
    await append(store, 'run_0001', { journal: next((await store.loadRun('run_0001')) as RunRecord) });
    await close();
    // The first flush of the group no longer continues its run.
    const changed = `replace(CAST(body AS TEXT), ${FIRST_TEXT}, ${OTHER_TEXT})`;
    await execute(`UPDATE event_groups SET body = CAST(${changed} AS BLOB) WHERE group_id = 1`);
    store = await open();
    const reader = (await openForReading(dir)) as DataDir;
    expect(store.findGroupDamage()).not.toEqual([]);
    for (const id of ['run_0001', 'run_0002']) {
      const here = await readAll(store, (await store.loadRun(id)) as RunRecord);
      expect(here.run.heads.rasp_seq).toBe(id === 'run_0001' ? 2 : 4);
      expect(await readAll(reader.store, (await reader.store.loadRun(id)) as RunRecord)).toEqual(here);
    }
    await append(store, 'run_0001', { journal: next((await store.loadRun('run_0001')) as RunRecord) });
    const later = (await store.loadRun('run_0001')) as RunRecord;
    expect(await reader.store.loadRun('run_0001')).toEqual(later);
    await readAll(reader.store, later);
    await store.mergeAll();
    expect(await groupIds()).toContain(1);
    await reader.close();
  });

  test('damaged flush counts of a merged segment are reported, and its events can still be read', async () => {
    const store = await open();
    let run = await create(store, 1);
    for (let step = 0; step < 3; step += 1) run = await append(store, 'run_0001', { journal: next(run) });
    await store.mergeAll();
    for (const counts of ['{', '[]', '[1,1]', '[2,2,-2,4]', '7', '[6]']) {
      await execute(`UPDATE segments SET flushes = '${counts}' WHERE flushes IS NOT NULL`);
      expect(await store.readJournal('run_0001', 'rasp', { limit: 99 })).toHaveLength(8);
      await expect(store.recomputeDigest('run_0001')).rejects.toThrow(DamagedDataError);
      await expect(store.readSegments('run_0001', 'rasp', FIRST_SEGMENT, 1e6)).rejects.toThrow(DamagedDataError);
    }
  });
});

// Any order of events, changes, merges, restarts and failed appends: a reader in this process, one in another, and a
// chain of digests kept by the test agree after each step.
type Step = 'small' | 'large' | 'change' | 'merge' | 'restart' | 'stale' | 'together';

test('any sequence of writes, merges and restarts gives every reader the same journal', async () => {
  const steps = array(
    tuple(
      constantFrom<Step>('small', 'small', 'small', 'large', 'change', 'merge', 'restart', 'stale', 'together'),
      integer({ min: 1, max: 3 }),
    ),
    { maxLength: 25 },
  );
  await assert(
    asyncProperty(steps, async (sequence) => {
      rmSync(dir, { recursive: true, force: true });
      let store = await open();
      for (const number of [1, 2, 3]) await create(store, number);
      const reader = await openForReading(dir);
      if (!reader) throw new Error('no reader');
      for (const [step, number] of sequence) {
        const id = `run_000${number}`;
        const run = (await store.loadRun(id)) as RunRecord;
        if (step === 'small') await append(store, id, { journal: next(run, number) });
        else if (step === 'large') await append(store, id, { journal: next(run, 400) });
        else if (step === 'change')
          await append(store, id, { journal: next(run), set: { attempt_number: run.attempt_number + 1 } });
        else if (step === 'merge') await store.mergeAll();
        else if (step === 'restart') {
          await close();
          store = await open();
        } else if (step === 'stale') {
          const stale = change(run, { journal: next(run) });
          const outcomes = await Promise.all([store.append(stale), store.append(stale)]);
          expect(outcomes.map(({ committed }) => committed)).toEqual([true, false]);
        } else {
          // Small flushes of all runs, and a change of one of them, in one transaction.
          const runs = await store.listRuns({ limit: 3 });
          await Promise.all(
            runs.map((each, index) =>
              store.append(
                change(each, {
                  journal: next(each),
                  ...(index === number - 1 ? { set: { attempt_number: each.attempt_number + 1 } } : {}),
                }),
              ),
            ),
          );
        }
        for (const each of await store.listRuns({ limit: 3 })) {
          const here = await readAll(store, each);
          expect(await readAll(reader.store, (await reader.store.loadRun(each.run_id)) as RunRecord)).toEqual(here);
        }
      }
      await reader.close();
      await close();
    }),
    { numRuns: runs(60) },
  );
});
