// The lease of a host: renewed in time, lost for good when it expires, and replaced after all its work has ended.
import { expect, onTestFinished, test } from 'vitest';
import { LeaseKeeper } from '../../src/ownership/postgres/lease-keeper.js';
import { systemTimers } from '../../src/process/timers.js';
import { Database } from '../../src/store/postgres/connection/database.js';
import { listLiveHosts } from '../../src/store/postgres/hosts/host-lease.js';
import { Gate } from '../support/gate.js';
import { until } from '../support/postgres.js';
import { withStores, type Stores } from '../support/postgres-stores.js';

const TTL_MS = 900;

async function keep(
  stores: Stores,
  url = stores.url,
  monotonicMs: () => number = () => performance.now(),
  ttlMs = TTL_MS,
) {
  const store = await stores.store();
  const connection = new Database(url, { connections: 1 });
  const failures: unknown[] = [];
  const keeper = await LeaseKeeper.open(
    { store, connection, timers: systemTimers, monotonicMs, onFailure: (error) => failures.push(error) },
    { name: 'n', url: null, site: null, ttlMs },
  );
  onTestFinished(async () => {
    await keeper.close();
    await connection.close();
  });
  return { keeper, store, failures };
}

const leaseOf = async (stores: Stores, id: string) =>
  (
    await stores.query<{ left: number }>(
      `SELECT extract(epoch FROM lease_until - clock_timestamp())::float AS left FROM parley.hosts WHERE host_id = $1`,
      [id],
    )
  )[0]?.left ?? -1;

test('is renewed as long as the host lives, and over at once when it leaves', async () => {
  const stores = await withStores();
  // Long enough for a busy machine.
  const ttlMs = 4000;
  const { keeper, store } = await keep(stores, undefined, undefined, ttlMs);
  const id = keeper.hostId;
  const startedAt = performance.now();
  await until('more than its length has passed', async () => {
    expect(await leaseOf(stores, id)).toBeGreaterThan(0);
    expect(keeper.mayRun).toBe(true);
    return performance.now() - startedAt > 1.5 * ttlMs;
  });
  expect(keeper.hostId).toBe(id);
  await keeper.close();
  expect(await listLiveHosts(store.database)).toEqual([]);
});

test('an expired lease is replaced under another id only after all its work has ended', async () => {
  const stores = await withStores();
  const { keeper, failures } = await keep(stores);
  const id = keeper.hostId;
  const ended = new Gate();
  let isLost = false;
  keeper.onLost(async () => {
    isLost = true;
    await ended.opened;
  });
  await stores.expire(id);
  await until('the loss is reported', () => isLost);
  expect([keeper.isHeld, keeper.mayRun]).toEqual([false, false]);
  expect(await stores.query('SELECT FROM parley.hosts')).toHaveLength(1);
  expect(String(failures[0])).toContain('lost its lease');
  ended.open();
  await until('there is another', () => keeper.hostId !== id);
  expect(keeper.mayRun).toBe(true);
  expect(await leaseOf(stores, id)).toBeLessThan(0);
});

test('a database outage longer than the lease ends the lease as well; it returns with the database', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const { keeper } = await keep(stores, proxy.url);
  const id = keeper.hostId;
  let isLost = false;
  keeper.onLost(async () => void (isLost = true));
  proxy.shut();
  await until('the loss is reported', () => isLost, 60_000);
  proxy.open();
  await until('there is another', () => keeper.hostId !== id && keeper.mayRun, 60_000);
});

test('a process that was stopped for longer than its lease knows it before anything else', async () => {
  const stores = await withStores();
  let pausedMs = 0;
  const { keeper } = await keep(stores, stores.url, () => performance.now() + pausedMs);
  expect(keeper.mayRun).toBe(true);
  pausedMs = TTL_MS;
  expect(keeper.mayRun).toBe(false);
  const id = keeper.hostId;
  await until('there is another', () => keeper.hostId !== id && keeper.mayRun);
});
