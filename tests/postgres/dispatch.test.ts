// The dispatch on a database that hosts share does what every dispatch must do; and beside others, what only it must.
import { expect, onTestFinished, test } from 'vitest';
import { PostgresDispatch } from '../../src/dispatch/postgres/postgres-dispatch.js';
import { systemClock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { registerHost } from '../../src/store/postgres/host-lease.js';
import { openPostgres } from '../../src/store/postgres/open-postgres.js';
import { describeDispatch, eventually, Stage } from '../dispatch/conformance.js';
import { withDatabase, type TestDatabase } from '../support/postgres.js';

async function openHost({ url }: TestDatabase, host: string) {
  const store = await openPostgres(url, { host });
  await registerHost(store.database, { host_id: host, name: host, url: null, ttlMs: 600_000 });
  return { store, create: (...[handlers, slots]: [ConstructorParameters<typeof PostgresDispatch>[1], number]) => new PostgresDispatch({ url, store, timers: systemTimers, clock: systemClock }, handlers, slots) };
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

// Two hosts, both awake; without a slot they only decide.
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
  // By a: nobody tells b but the database.
  await a.queue(1, 2, 3, 4, 5, 6, 7, 8);
  a.dispatch.wake();
  await eventually(() => [a.turns.size, b.turns.size]).toEqual([3, 3]);
  for (const turns of [a.turns, b.turns]) for (const gate of turns.values()) gate.open();
  await eventually(() => [...a.started, ...b.started].toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8].map((number) => `run_000${number}`));
});

test('questions are decided once, whichever host it is, and their jobs are gone', async () => {
  const { database, a, b } = await withTwo(0);
  for (let number = 1; number <= 9; number += 1) await (number % 2 === 0 ? a : b).ask(number, 200 + 20 * number);
  await eventually(() => [...a.decided, ...b.decided].toSorted()).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9].map((number) => `int_${number}`));
  await eventually(() => database.query('SELECT FROM graphile_worker.jobs')).toEqual([]);
});

test('a question whose job was lost with its host is decided all the same, late', async () => {
  const { database, a, b } = await withTwo(0);
  await a.ask(1, 3_600_000);
  await database.query('SELECT graphile_worker.remove_job(key) FROM graphile_worker.jobs');
  await database.query(`UPDATE parley.interactions SET due_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 11000`);
  await eventually(() => [...a.decided, ...b.decided]).toEqual(['int_1']);
});

test('what is late is looked after however often it is woken', async () => {
  const { database, a, b } = await withTwo(0);
  await b.close();
  await a.ask(1, 3_600_000);
  await database.query('SELECT graphile_worker.remove_job(key) FROM graphile_worker.jobs');
  const waking = setInterval(() => a.dispatch.wake(), 100);
  onTestFinished(() => clearInterval(waking));
  await database.query(`UPDATE parley.interactions SET due_at = (extract(epoch FROM clock_timestamp()) * 1000)::bigint - 11000`);
  await eventually(() => a.decided).toEqual(['int_1']);
});
