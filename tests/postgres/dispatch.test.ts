// The dispatch on a shared database meets the contract of every dispatch, and rules of its own with other hosts.
import { expect, onTestFinished, test } from 'vitest';
import { PostgresDispatch } from '../../src/dispatch/postgres/postgres-dispatch.js';
import { systemClock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { registerHost } from '../../src/store/postgres/hosts/host-lease.js';
import { openPostgres } from '../../src/store/postgres/connection/open-postgres.js';
import { describeDispatch, eventually, Stage } from '../dispatch/conformance.js';
import { withDatabase, type TestDatabase } from '../support/postgres.js';

// The clock of the database, in milliseconds.
const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint';

async function openHost({ url }: TestDatabase, host: string) {
  const store = await openPostgres(url, { host });
  await registerHost(store.database, { host_id: host, name: host, url: null, ttlMs: 600_000 });
  return {
    store,
    create: (...[handlers, slots]: [ConstructorParameters<typeof PostgresDispatch>[1], number]) =>
      new PostgresDispatch(
        {
          store,
          ownership: { claim: (...args) => store.claimQueued(...args) },
          timers: systemTimers,
          clock: systemClock,
        },
        handlers,
        slots,
      ),
  };
}

describeDispatch('PostgreSQL', async () => {
  const database = await withDatabase();
  const host = await openHost(database, 'host_1');
  return {
    ...host,
    cleanup: async () => {
      await host.store.close();
      await database.drop();
    },
  };
});

// Two running hosts; without a slot they only decide.
async function withTwo(slots: number): Promise<{ database: TestDatabase; a: Stage; b: Stage }> {
  const database = await withDatabase();
  const hosts = [await openHost(database, 'host_a'), await openHost(database, 'host_b')];
  const [a, b] = hosts.map((host) => new Stage(host, slots)) as [Stage, Stage];
  onTestFinished(async () => {
    await Promise.all([a.close(), b.close()]);
    for (const { store } of hosts) await store.close();
    await database.drop();
    expect([...a.failures, ...b.failures]).toEqual([]);
  });
  a.dispatch.wake();
  b.dispatch.wake();
  await Promise.all([a.dispatch.idle(), b.dispatch.idle()]);
  return { database, a, b };
}

test('each run is begun by one of the hosts, as many on each as it has slots', async () => {
  const { a, b } = await withTwo(3);
  // By a: only the database notifies b.
  await a.queue(1, 2, 3, 4, 5, 6, 7, 8);
  a.dispatch.wake();
  await eventually(() => [a.turns.size, b.turns.size]).toEqual([3, 3]);
  for (const turns of [a.turns, b.turns]) for (const gate of turns.values()) gate.open();
  await eventually(() => [...a.started, ...b.started].toSorted()).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `run_000${number}`),
  );
});

test('questions are decided once, whichever host it is', async () => {
  const { a, b } = await withTwo(0);
  for (let number = 1; number <= 9; number += 1) await (number % 2 === 0 ? a : b).ask(number, 200 + 20 * number);
  await eventually(() => [...a.decided, ...b.decided].toSorted()).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => `int_${number}`),
  );
});

test('questions that expired while every host was down are decided once when hosts come back', async () => {
  const database = await withDatabase();
  const hosts = await Promise.all(['host_a', 'host_b', 'host_c'].map((name) => openHost(database, name)));
  const stages = hosts.map((host) => new Stage(host, 0));
  onTestFinished(async () => {
    await Promise.all(stages.map((stage) => stage.close()));
    for (const { store } of hosts) await store.close();
    await database.drop();
  });
  for (let number = 1; number <= 9; number += 1) await stages[0]?.ask(number, -3_600_000 - number);
  for (const { dispatch } of stages) dispatch.wake();
  await eventually(() => stages.flatMap(({ decided }) => decided).toSorted()).toEqual(
    [1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => `int_${number}`),
  );
  expect(stages.flatMap(({ failures }) => failures)).toEqual([]);
});

test('an earlier deadline re-arms the timer of a host that did not ask, without a wake-up', async () => {
  const { a, b } = await withTwo(0);
  await a.ask(1, 3_600_000);
  await b.close();
  await b.ask(2, 300);
  await eventually(() => a.decided).toEqual(['int_2']);
});

test('a question whose claimant died is decided by another host when the claim has expired', async () => {
  const { database, a, b } = await withTwo(0);
  await a.ask(1, 3_600_000);
  await database.query(`UPDATE parley.interactions SET due_at = 1, retry_at = ${NOW} + 500`);
  // What a lost connection does to a host that missed the claim.
  await database.terminate(`query LIKE 'LISTEN%'`);
  await eventually(() => [...a.decided, ...b.decided]).toEqual(['int_1']);
});

test('a question with a process on another live host is left to it while it lives', async () => {
  const { database, a, b } = await withTwo(0);
  await b.close();
  await a.ask(1, 3_600_000);
  await database.query(`UPDATE parley.runs SET resident = 'host_b'`);
  await database.query('UPDATE parley.interactions SET due_at = 1');
  const store = await openPostgres(database.url, { host: 'host_a' });
  onTestFinished(() => store.close());
  expect(await store.claimDecisions(10)).toEqual([]);
  await a.ask(2, 10);
  await eventually(() => a.decided).toEqual(['int_2']);
  await database.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() WHERE host_id = 'host_b'`);
  await eventually(() => a.decided).toEqual(['int_2', 'int_1']);
});

test('a damaged question is reported once, postponed, and does not hold up the ones behind it', async () => {
  const { database, a, b } = await withTwo(0);
  await b.close();
  for (let number = 1; number <= 6; number += 1) await a.ask(number, 3_600_000);
  await database.query(`UPDATE parley.interactions SET question_json = '{"broken' WHERE interaction_id <> 'int_6'`);
  await database.query(`UPDATE parley.interactions SET due_at = ${NOW} - 1000`);
  await a.ask(7, 10);
  await eventually(() => a.decided.toSorted()).toEqual(['int_6', 'int_7']);
  const damaged = await database.query<{ late: number }>(`SELECT FROM parley.interactions
    WHERE state = 'pending' AND retry_at > ${NOW} + 3000000`);
  expect(damaged).toHaveLength(5);
  expect(a.failures.splice(0).map(String)).toEqual(
    Array(5).fill(expect.stringMatching(/question_json of question int_\d .* is no JSON/)),
  );
});

test('claiming an expired question reads the head of an index, however many questions wait', async () => {
  const { database, a, b } = await withTwo(0);
  await Promise.all([a.close(), b.close()]);
  await a.queue(1);
  await database.query(`INSERT INTO parley.interactions
      (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at, decides)
    SELECT 'int_' || number, 'run_0001', 1, '{}', CASE number WHEN 1 THEN 'pending' ELSE 'answered' END, 1, number, true
    FROM generate_series(1, 20000) AS number`);
  // One question waits per run: all others belong to runs of their own, which nothing here reads.
  await database.query('ALTER TABLE parley.interactions DROP CONSTRAINT interactions_run_id_fkey');
  await database.query(`UPDATE parley.interactions
    SET state = 'pending', run_id = 'run_' || interaction_id, due_at = due_at + ${NOW}
    WHERE interaction_id <> 'int_1'`);
  await database.query('VACUUM ANALYZE parley.interactions');
  const plans = await database.query<{
    'QUERY PLAN': string;
  }>(`EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off, BUFFERS off)
    UPDATE parley.interactions SET retry_at = 1 WHERE interaction_id IN (SELECT interaction_id FROM parley.interactions
      WHERE state = 'pending' AND decides
        AND COALESCE(retry_at, due_at) <= (extract(epoch FROM statement_timestamp()) * 1000)::bigint
      ORDER BY COALESCE(retry_at, due_at), interaction_id LIMIT 4 FOR UPDATE SKIP LOCKED)`);
  const plan = plans.map((line) => line['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/Index Scan using pending_by_decision/);
  expect(plan).not.toMatch(/Seq Scan/);
});
