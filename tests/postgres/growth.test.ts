// What the queries of the shared store cost does not grow with the number of runs: each statement is explained with the
// pages that it reads, in a database with some runs and in one with ten times as many.
import { expect, test } from 'vitest';
import { fillPostgres } from '../../bench/lib/fill-postgres.mjs';
import type { Database, Statement } from '../../src/store/postgres/connection/database.js';
import { forgiveCrashes, listCancelRequests, listOwned } from '../../src/store/postgres/hosts/claims.js';
import { registerHost } from '../../src/store/postgres/hosts/host-lease.js';
import { listLeftovers, listStranded, listUnexported } from '../../src/store/postgres/hosts/run-files.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import { withStores } from '../support/postgres-stores.js';
import { everyCall } from '../store/every-call.js';

const FEW = 4000;
const MANY = 10 * FEW;
// Enough for a page of a list. A scan of the smallest table, the questions of MANY runs, reads more.
const MOST_PAGES = 90;
const MOST_RATIO = 3;
const HOST = 'host_1';
const SITE = { site: 'site_1', place: '/data' };
const GONE_MS = 600_000;

// Statements that read more pages the more runs there are, by name.
const ALLOWED: Readonly<Record<string, string>> = {
  'compare-totals': 'parley doctor counts all rows',
  'recount-totals': 'a recount is asked for',
  'release-claims': 'reads the queue once, when a host stops or has lost its lease',
};

// What a host asks besides the calls of the store.
async function poll(store: PostgresStore): Promise<void> {
  const db = store.database;
  await store.peekQueued();
  await store.claimQueued(2, ['run_x']);
  await store.listOwnedByDead(9);
  await store.claimDecisions(9);
  await store.findNextDecision();
  await store.postponeDecision('int_x', 1);
  await listOwned(db, HOST, 9);
  await listCancelRequests(db, 9);
  await listStranded(db, GONE_MS, 9);
  await listUnexported(db, SITE, 9);
  await listLeftovers(db, SITE, { except: [], limit: 9 });
  await forgiveCrashes(db, HOST);
}

function record(db: Database, statements: Statement[]): void {
  const { read, write, transact } = db;
  const add = (...added: readonly Statement[]) => void statements.push(...added);
  const replace = (name: string, value: unknown) => Object.defineProperty(db, name, { value });
  replace('read', (statement: Statement) => (add(statement), read.call(db, statement)));
  replace('write', (statement: Statement) => (add(statement), write.call(db, statement)));
  const transactRecorded: Database['transact'] = (look, decide) => {
    add(...look);
    return transact.call(db, look, async (...answers) => {
      const decision = await decide(...answers);
      if ('write' in decision) add(...decision.write);
      return decision;
    }) as never;
  };
  replace('transact', transactRecorded);
}

interface Explained {
  readonly 'QUERY PLAN': readonly [
    { readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number } },
  ];
}

// The most pages that a statement of this name has read, by name.
async function countPages(runs: number): Promise<Map<string, number>> {
  const stores = await withStores();
  const store = await stores.store({ host: HOST, site: SITE });
  const info = { serves: true };
  await registerHost(store.database, { host_id: HOST, name: 'one', url: null, ...SITE, ttlMs: GONE_MS, info });
  await fillPostgres(store, stores.url, { count: runs, place: SITE.place });
  const [{ pages: questions } = { pages: 0 }] = await stores.query<{ pages: number }>(
    `SELECT relpages AS pages FROM pg_class WHERE oid = 'parley.interactions'::regclass`,
  );
  if (runs === MANY) expect(questions).toBeGreaterThan(MOST_PAGES);
  const statements: Statement[] = [];
  record(store.database, statements);
  // A label of few runs: a list by label and state takes as long as the smaller of the two lists.
  for (const call of Object.values(everyCall(store, { key: 'few', value: 'yes' }))) await call();
  await poll(store);
  const pages = new Map<string, number>();
  for (const { name, text, values } of statements.filter((each) =>
    /^\s*(?:WITH|SELECT|UPDATE|DELETE)\b/.test(each.text),
  )) {
    // Again, with its last values, and undone. What cannot be done twice inserts rows.
    await stores.query('BEGIN');
    const [row] = await stores
      .query<Explained>(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [...values])
      .catch((error: { code?: string }) => (error.code?.startsWith(INTEGRITY) ? [] : Promise.reject(error)));
    await stores.query('ROLLBACK');
    if (!row) continue;
    const plan = row['QUERY PLAN'][0].Plan;
    pages.set(name, Math.max(pages.get(name) ?? 0, plan['Shared Hit Blocks'] + plan['Shared Read Blocks']));
  }
  return pages;
}

// The class of the codes of violated constraints.
const INTEGRITY = '23';

test('no statement of the shared store reads more pages because there are ten times as many runs', async () => {
  const few = await countPages(FEW);
  const many = await countPages(MANY);
  expect(many.size).toBeGreaterThan(80);
  const growing = [...many].filter(([name, pages]) => pages > Math.max(MOST_PAGES, MOST_RATIO * (few.get(name) ?? 0)));
  expect(
    growing
      .filter(([name]) => !(name in ALLOWED))
      .map(([name, pages]) => `${name}: ${few.get(name)} to ${pages} pages`),
  ).toEqual([]);
  // An exception that nothing needs would hide a scan later.
  expect(growing.map(([name]) => name)).toEqual(expect.arrayContaining(Object.keys(ALLOWED)));
});

// PostgreSQL looks for the rows that refer to a run in each of these tables.
test('the rows of a deleted run are found by an index in every table that refers to runs', async () => {
  const stores = await withStores();
  const references = await stores.query<{ table: string; column: string; found: boolean }>(
    `SELECT conrelid::regclass::text AS table, attname AS column, EXISTS (SELECT FROM pg_index
        WHERE indrelid = conrelid AND indkey[0] = conkey[1] AND indpred IS NULL) AS found
      FROM pg_constraint JOIN pg_attribute ON attrelid = conrelid AND attnum = conkey[1]
      WHERE contype = 'f' AND confrelid = 'parley.runs'::regclass`,
  );
  expect(references.length).toBeGreaterThan(3);
  expect(references.filter(({ found }) => !found)).toEqual([]);
});
