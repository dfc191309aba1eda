// Totals in PostgreSQL: hosts that change runs at the same time do not wait for each other, the rows of the totals stay
// few, and a database of the previous version gets exact totals.
import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../src/store/postgres/connection/database.js';
import { migrate } from '../../src/store/postgres/connection/migrate.js';
import { MIGRATIONS } from '../../src/store/postgres/connection/migrations.js';
import { openPostgres } from '../../src/store/postgres/connection/open-postgres.js';
import type { Store } from '../../src/store/store.js';
import { ask, delivery, newRun } from '../store/conformance.js';
import { commit, create, withStores } from '../support/postgres-stores.js';
import { withDatabase } from '../support/postgres.js';

const TURN = {
  attempt_number: 1,
  parser: { profile: 'codex_ndjson', units: 3, parsed: 2, fallbacks: 1, hit_rate: 2 / 3, warnings: { ODD_LINE: 1 } },
  completion: { result: 'unknown', reason_code: 'NO_TURN_COMPLETED' },
} as const;
const RUNS = 60;

async function work(store: Store, from: number): Promise<void> {
  for (let number = from; number < from + RUNS; number += 1) {
    const run = await commit(store, await create(store, number), {
      set: { status: 'waiting_user' },
      ask: ask(`int_${number}`),
      deliveries: [delivery(`dlv_${number}`)],
    });
    if (number % 2 === 0) continue;
    await commit(store, run, { set: { status: 'failed' }, turn: TURN });
    if (number % 3 === 0) await store.deleteRun(run.run_id, { damaged: true });
  }
}

test('many changes of several stores leave few rows, and every total is right', async () => {
  const stores = await withStores();
  const all = await Promise.all([stores.store(), stores.store(), stores.store()]);
  await Promise.all(all.map((store, index) => work(store, 1000 * (index + 1))));
  const [store] = all;
  expect(await store.findWrongTotals()).toEqual([]);
  expect(await store.countRuns()).toMatchObject({ waiting_user: (3 * RUNS) / 2, queued: 0 });
  expect(await store.sumTurns()).toMatchObject([{ turns: (3 * RUNS) / 2, warnings: { ODD_LINE: (3 * RUNS) / 2 } }]);
  const [rows] = await stores.query<{ count: string; added: string }>(
    'SELECT count(*) AS count, max(entry_id) AS added FROM parley.totals',
  );
  expect(Number(rows?.added)).toBeGreaterThan(1500);
  expect(Number(rows?.count)).toBeLessThan(400);
});

test('a change does not wait for a total that another transaction has changed', async () => {
  const stores = await withStores();
  const store = await stores.store();
  await create(store, 1);
  await stores.query('BEGIN');
  await stores.query(`UPDATE parley.runs SET status = 'failed' WHERE run_id = 'run_0001'`);
  await create(store, 2);
  expect((await store.countRuns()).queued).toBe(2);
  await stores.query('COMMIT');
  expect(await store.countRuns()).toMatchObject({ queued: 1, failed: 1 });
});

test('a database of the previous version gets the totals of its rows and of its deleted runs', async () => {
  const database = await withDatabase({ empty: true });
  onTestFinished(() => database.drop());
  const old = new Database(database.url);
  await migrate(
    old,
    MIGRATIONS.filter(({ version }) => version < 8),
  );
  await old.close();
  const { spec } = newRun(1);
  for (const [id, status] of [
    ['run_1', 'succeeded'],
    ['run_2', 'waiting_user'],
  ])
    await database.query(
      `INSERT INTO parley.runs (run_id, request_id, request_digest, engine, spec_json, cwd, continues, status,
        attempt_number, epoch, waited_ms, created_at, updated_at, rasp_seq, fcmp_seq, ts, digest, last_commit)
        VALUES ($1, $1, 'x', 'codex', $2, '/work', false, $3, 1, 0, 0, 1, 1, 0, 0, 0, '', gen_random_uuid())`,
      [id, JSON.stringify(spec), status],
    );
  await database.query(`INSERT INTO parley.turns VALUES
    ('run_1', 1, 'codex', 'p', 5, 4, 1, '{"ODD_LINE":2}', 'unknown', 'NO_TURN_COMPLETED'),
    ('run_2', 1, 'codex', 'p', 9223372036854775807, 1, 0, '{', 'completed', 'ENGINE_SUCCESS')`);
  await database.query(`INSERT INTO parley.interactions
    (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at, decides)
    VALUES ('int_1', 'run_2', 1, '{"kind":"open_text","prompt":"x","options":[]}', 'pending', 5, 9, false)`);
  await database.query(`INSERT INTO parley.deleted_turns VALUES
    ('codex', 'p', 'turns', 3), ('codex', 'p', 'units', 100), ('gemini', 'q', 'turns', 9223372036854775807)`);
  const store = await openPostgres(database.url, { host: null, migrate: true });
  onTestFinished(() => store.close());
  expect(await store.countRuns()).toMatchObject({ succeeded: 1, waiting_user: 1 });
  expect(await store.countPending(10)).toEqual({ pending: 1, overdue: 1 });
  expect(await store.sumTurns()).toMatchObject([
    { engine: 'codex', turns: 5, units: 105, parsed: 5, warnings: { ODD_LINE: 2 }, unknown: { NO_TURN_COMPLETED: 1 } },
  ]);
  expect((await store.listPending({ engine: 'codex', limit: 9 })).map((each) => each.interaction_id)).toEqual([
    'int_1',
  ]);
  expect(await database.query(`SELECT to_regclass('parley.deleted_turns') AS old`)).toEqual([{ old: null }]);
});
