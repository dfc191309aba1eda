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
import { everyCall } from './every-call.js';

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
  for (const call of Object.values(everyCall(store))) await call();
  await store.mergeAll();
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
