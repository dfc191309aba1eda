// No query of the SQLite store reads whole tables: every statement that the store prepares is explained, and a scan of
// a table that grows with the number of runs fails, unless it is listed here with the reason why it is bounded.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { migrate } from '../../src/store/sqlite/migrate.js';
import { makeDurable, openDatabase, type Database } from '../../src/store/sqlite/open-database.js';
import { loadGroups } from '../../src/store/sqlite/recent/load-groups.js';
import { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import type { RunFilter, RunRecord, Store } from '../../src/store/store.js';
import { ask, change, delivery, flush, newRun, T0, type RowEdit } from './conformance.js';

const GROWING = [
  'runs',
  'interactions',
  'segments',
  'turns',
  'deliveries',
  'run_labels',
  'request_interactive_runtime',
];

// Scans that read no more rows than they return, or that nobody waits for. `query` is a part of the statement.
const ALLOWED: readonly { readonly query: RegExp; readonly step: RegExp; readonly reason: string }[] = [
  {
    query: /^SELECT .* FROM runs {1,2}(?:WHERE run_id < \? )?ORDER BY run_id DESC LIMIT \?$/s,
    step: /^SCAN runs USING (?:COVERING )?INDEX sqlite_autoindex_runs_1$/,
    reason: 'a list without a filter reads its page from the end of the index',
  },
  {
    query: /state = 'pending' .*ORDER BY asked_at, interaction_id LIMIT \?$/s,
    step: /^SCAN interactions USING (?:COVERING )?INDEX pending_by_age$/,
    reason: 'the inbox reads pending questions in their order until the page is full',
  },
  {
    query: /^SELECT \* FROM interactions WHERE state = 'pending' AND decides = 1/,
    step: /^SCAN interactions USING INDEX pending_by_decision$/,
    reason: 'the next decision is at the beginning of the index',
  },
  {
    query: /FROM runs INDEXED BY runs_queued/,
    step: /^SCAN runs USING (?:COVERING )?INDEX runs_queued$/,
    reason: 'the oldest queued runs are at the beginning of the index',
  },
  {
    query: /WHERE at_work = 1/,
    step: /^SCAN runs USING (?:COVERING )?INDEX runs_at_work$/,
    reason: 'the index has only the runs that a process was about to start or ran',
  },
  {
    query: /FROM (?:turns|runs) .* UNION ALL SELECT 'turns', engine, profile/s,
    step: /^SCAN/,
    reason: 'parley doctor counts all rows in a process of its own, and a recount is asked for',
  },
];

const statements = new Set<string>();
let dir: string;
let db: Database;
let store: SqliteStore;

// Methods of the drivers cannot be assigned.
function record(name: 'prepare' | 'exec'): void {
  const original = db[name].bind(db) as (sql: string) => unknown;
  const value = (sql: string): unknown => {
    statements.add(sql);
    return original(sql);
  };
  Object.defineProperty(db, name, { value, configurable: true });
}

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-plans-'));
  db = await openDatabase(join(dir, 'parley.db'));
  migrate(db);
  makeDurable(db);
  record('prepare');
  record('exec');
  store = new SqliteStore(db, loadGroups(db));
});

afterAll(async () => {
  await store.close();
  rmSync(dir, { recursive: true });
});

async function create(number: number): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number, { handle: HANDLE }));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

const HANDLE = {
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: 'x',
  cwd: '/work',
  home: '/home/x',
  created_at_attempt: 1,
} as const;

async function commit(run: RunRecord, edit: RowEdit): Promise<RunRecord> {
  expect(await store.append(change(run, edit))).toMatchObject({ committed: true });
  return (await store.loadRun(run.run_id)) as RunRecord;
}

const subsets = <T extends object>(parts: readonly T[]): T[] =>
  Array.from({ length: 2 ** parts.length }, (_, bits) =>
    Object.assign({} as T, ...parts.filter((__, index) => (bits >> index) % 2 === 1)),
  ) as T[];

const RUN_FILTERS: readonly Omit<RunFilter, 'limit'>[] = subsets<Omit<RunFilter, 'limit'>>([
  { status: 'queued' },
  { engine: 'codex' },
  { label: { key: 'team', value: 'a' } },
  { before: 'run_9999' },
]);
const PENDING_FILTERS = subsets<object>([
  { engine: 'codex' },
  { label: { key: 'team', value: 'a' } },
  { overdueAt: T0 },
  { after: { asked_at: T0, interaction_id: 'int_0' } },
]);
const TURN = {
  attempt_number: 1,
  parser: { profile: 'codex_ndjson', units: 3, parsed: 2, fallbacks: 1, hit_rate: 2 / 3, warnings: { ODD_LINE: 1 } },
  completion: { result: 'unknown', reason_code: 'NO_TURN_COMPLETED' },
} as const;
const ALL = { limit: 9, fromSeq: 1 };
const RESOLVED = {
  interaction_id: 'int_1',
  state: 'canceled',
  resolution: { at: T0, response: null, actor: null, idempotency_key: null, finish: false },
} as const;

// Each method of the store, so that a new one is missing here until its queries are checked.
const CALLS: Readonly<Record<keyof Store, () => unknown>> = {
  isComplete: () => {},
  summaries: async () => {
    for (const filter of RUN_FILTERS) await store.summaries.listRuns({ ...filter, limit: 9 });
    for (const filter of PENDING_FILTERS) await store.summaries.listPending({ ...filter, limit: 9 });
    await store.summaries.loadRun('run_0001');
    await store.summaries.loadInteraction('int_1');
    await store.summaries.loadPendingInteraction('run_0001');
  },
  createRun: () => create(1),
  append: async () => {
    const run = await create(2);
    const small = await commit(run, { journal: flush(3, 1, 3, T0 + 9) });
    const asked = await commit(small, { set: { status: 'waiting_user' }, ask: ask('int_1', { decides: true }) });
    await commit(await commit(asked, { set: { status: 'queued' }, resolve: RESOLVED, handle: HANDLE }), {
      set: { status: 'failed', epoch: 2 },
      turn: TURN,
      deliveries: [delivery('dlv_1'), delivery('dlv_2')],
      create: newRun(3),
      journal: flush(4, 1, 4, T0 + 99),
    });
  },
  deleteRun: async () => {
    const spec = { ...newRun(4).spec, home: '/home/y', cwd: '/data/runs/run_0004/workspace' };
    const outcome = await store.createRun(newRun(4, { spec }));
    await commit((outcome as { run: RunRecord }).run, { set: { status: 'failed' }, turn: TURN });
    expect(await store.deleteRun('run_0004')).toBe('deleted');
  },
  onCommitted: () => {},
  follow: () => {},
  onMissed: () => {},
  loadRun: () => store.loadRun('run_0001'),
  salvageRun: () => store.salvageRun('run_0001'),
  findInHome: () => store.findInHome('/home/x', 'run_0001'),
  findAtWork: () => store.findAtWork('/work'),
  loadRequest: () => store.loadRequest('req_0001'),
  listRuns: async () => {
    for (const filter of RUN_FILTERS) await store.listRuns({ ...filter, limit: 9 });
  },
  listRunIds: async () => {
    for (const filter of RUN_FILTERS) await store.listRunIds({ ...filter, limit: 9 });
  },
  listEnded: async () => {
    await store.listEnded({ before: T0, limit: 9 });
    await store.listEnded({ before: T0, after: { run_id: 'run_0001', updated_at: T0 }, limit: 9 });
  },
  loadHandle: () => store.loadHandle('req_0001'),
  loadInteraction: () => store.loadInteraction('int_1'),
  loadInteractionByKey: () => store.loadInteractionByKey('run_0002', 'key'),
  loadPendingInteraction: () => store.loadPendingInteraction('run_0002'),
  loadLatestInteraction: () => store.loadLatestInteraction('run_0002'),
  listInteractions: () => store.listInteractions('run_0002'),
  listPending: async () => {
    for (const filter of PENDING_FILTERS) await store.listPending({ ...filter, limit: 9 });
  },
  nextDecision: () => store.nextDecision(['int_9']),
  listQueued: () => store.listQueued(9),
  readJournal: () => store.readJournal('run_0002', 'rasp', ALL),
  readLines: () => store.readLines('run_0002', 'rasp', 1, 100),
  listSegments: () => store.listSegments('run_0002', 'rasp'),
  readSegments: () => store.readSegments('run_0002', 'rasp', 1, 100),
  recomputeDigest: () => store.recomputeDigest('run_0002'),
  nextDelivery: () => store.nextDelivery(T0 + 9000, ['other']),
  nextDeliveryAt: () => store.nextDeliveryAt(['other']),
  finishDelivery: async () => {
    await store.finishDelivery('dlv_1', { type: 'retry', at: T0, error: 'x' });
    await store.finishDelivery('dlv_1', { type: 'given_up', at: T0, error: 'x' });
    await store.finishDelivery('dlv_2', { type: 'delivered' });
  },
  countDeliveries: () => store.countDeliveries(),
  countRuns: () => store.countRuns(),
  countPending: () => store.countPending(T0),
  sumTurns: async () => [await store.sumTurns(), await store.sumTurns('run_0002')],
  findWrongTotals: () => store.findWrongTotals(),
  recountTotals: () => store.recountTotals(),
  markStarting: () => store.markStarting('run_0001'),
  releaseStarts: async () => {
    await store.markStarting('run_0001');
    await store.releaseStarts();
  },
  countCrashes: async () => {
    await store.markStarting('run_0001');
    await store.countCrashes();
  },
  listByTail: () => store.listByTail(['n_0001']),
  listByPrefix: () => store.listByPrefix('run_', 9),
  checkUsable: () => store.checkUsable(),
  findGroupDamage: () => store.findGroupDamage(),
  close: () => store.mergeAll(),
};

function explain(sql: string): string[] {
  return sql
    .split(';')
    .filter((part) => /\b(?:SELECT|UPDATE|DELETE|INSERT)\b/.test(part))
    .flatMap((part) =>
      (db.prepare(`EXPLAIN QUERY PLAN ${part}`).all() as { detail: string }[]).map(({ detail }) => detail),
    );
}

// Steps that read more than a part of an index: whole tables, and recursions that do not end with the page.
function findScans(sql: string): string[] {
  const scan = new RegExp(`^(?:SCAN (?:${GROWING.join('|')})\\b|MATERIALIZE)`);
  const scans = explain(sql).filter((step) => scan.test(step));
  return scans.filter((step) => !ALLOWED.some((each) => each.query.test(sql.trim()) && each.step.test(step)));
}

test('no query of the SQLite store scans a table that grows with the number of runs', async () => {
  for (const call of Object.values(CALLS)) await call();
  const queries = [...statements].filter((sql) => /^\s*(?:WITH|SELECT|INSERT|UPDATE|DELETE)\b/.test(sql));
  expect(queries.length).toBeGreaterThan(100);
  expect(queries.flatMap((sql) => findScans(sql).map((step) => `${step}: ${sql}`))).toEqual([]);
  // An exception that nothing needs would hide a scan later.
  for (const { query, step } of ALLOWED)
    expect(
      queries.some((sql) => query.test(sql.trim()) && explain(sql).some((each) => step.test(each))),
      String(query),
    ).toBe(true);
});

// SQLite looks for the rows that refer to a run in each of these tables.
test.each(GROWING.filter((table) => !['runs', 'request_interactive_runtime'].includes(table)))(
  'the rows of %s are found by an index when their run is deleted',
  (table) => {
    expect(explain(`SELECT 1 FROM ${table} WHERE run_id = 'x'`)).toEqual([
      expect.stringMatching(new RegExp(`^SEARCH ${table} USING (?:COVERING )?(?:INDEX|PRIMARY KEY)`)),
    ]);
  },
);
