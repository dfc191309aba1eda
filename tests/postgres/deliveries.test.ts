// A delivery is assigned to one host at a time.
import { expect, test } from 'vitest';
import { T0, delivery } from '../store/conformance.js';
import { commit, create, withStores } from '../support/postgres-stores.js';

const LATER = T0 + 1_000_000;

test('a delivery is claimed by one host, and by another only when that claim expires', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
  await commit(one, await create(one), { deliveries: [delivery('dlv_1')] });
  expect((await one.nextDelivery(LATER))?.delivery_id).toBe('dlv_1');
  expect(await two.nextDelivery(LATER)).toBeNull();
  // The same host may claim it again: it is the one that sends it.
  expect((await one.nextDelivery(LATER))?.delivery_id).toBe('dlv_1');
  await stores.query(`UPDATE parley.deliveries SET claimed_until = clock_timestamp() - interval '1 second'`);
  expect((await two.nextDelivery(LATER))?.delivery_id).toBe('dlv_1');
  expect(await one.nextDelivery(LATER)).toBeNull();
});

test('the claim lasts a minute by the clock of the database', async () => {
  const stores = await withStores();
  const store = await stores.store();
  await commit(store, await create(store), { deliveries: [delivery('dlv_1')] });
  await store.nextDelivery(LATER);
  const [claim] = await stores.query<{ seconds: number }>(
    'SELECT extract(epoch FROM claimed_until - clock_timestamp())::float8 AS seconds FROM parley.deliveries',
  );
  expect(claim?.seconds).toBeGreaterThan(30);
  expect(claim?.seconds).toBeLessThanOrEqual(60);
});

test('the next due time excludes running deliveries, by the clock of the caller', async () => {
  const stores = await withStores();
  // Its clock is years away from that of the database.
  const [one, two] = [await stores.host('host_1'), await stores.store({ host: 'host_2', clock: { now: () => LATER } })];
  await commit(one, await create(one), { deliveries: [delivery('dlv_1', 'a'), delivery('dlv_2', 'b')] });
  await one.nextDelivery(LATER);
  expect(await one.nextDeliveryAt()).toBe(T0 + 5000);
  expect(await two.nextDeliveryAt()).toBe(T0 + 5000);
  const at = (await two.nextDeliveryAt(['b'])) ?? 0;
  expect(at).toBeGreaterThan(LATER + 30_000);
  expect(at).toBeLessThanOrEqual(LATER + 60_000);
  expect(await two.nextDeliveryAt(['a', 'b'])).toBeNull();
  await stores.query(
    `UPDATE parley.deliveries SET claimed_until = clock_timestamp() - interval '1 second' WHERE delivery_id = 'dlv_1'`,
  );
  expect(await two.nextDeliveryAt(['b'])).toBe(T0 + 5000);
});

test('one that is settled is free again', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
  await commit(one, await create(one), { deliveries: [delivery('dlv_1')] });
  await one.nextDelivery(LATER);
  expect(await one.finishDelivery('dlv_1', { type: 'retry', at: T0 + 6000, error: 'HTTP 500' })).toBe(true);
  expect(await two.nextDeliveryAt()).toBe(T0 + 6000);
  expect(await two.nextDelivery(LATER)).toMatchObject({ delivery_id: 'dlv_1', tries: 1 });
});

test('of many that ask at once each gets another one', async () => {
  const stores = await withStores();
  const hosts = await Promise.all(Array.from({ length: 4 }, (_, index) => stores.host(`host_${index}`)));
  await commit(hosts[0]!, await create(hosts[0]!), {
    deliveries: ['dlv_1', 'dlv_2', 'dlv_3'].map((id) => delivery(id)),
  });
  const got = await Promise.all(hosts.map((host) => host.nextDelivery(LATER)));
  expect(got.map((each) => each?.delivery_id ?? 'none').toSorted()).toEqual(['dlv_1', 'dlv_2', 'dlv_3', 'none']);
});
