// How a host judges absent hosts after it was absent itself.
import { expect, onTestFinished, test } from 'vitest';
import { joinCluster } from '../../src/ownership/postgres/join-cluster.js';
import { SharedClock } from '../../src/ownership/postgres/shared-clock.js';
import { systemClock } from '../../src/kernel/clock.js';
import { systemTimers } from '../../src/process/timers.js';
import { create, withStores } from '../support/postgres-stores.js';

const GONE_MS = 60_000;

test('a host that lost its lease with all others waits as long as a new one before it gives up on them', async () => {
  const stores = await withStores();
  const site = { site: 'site_b', place: '/b' };
  const store = await stores.store({ site });
  await create(await stores.store({ site: { site: 'site_a', place: '/a' } }), 1, { local: true });
  await stores.query('UPDATE parley.runs SET queued_at = 1');
  let gone = 0;
  const monotonicMs = () => performance.now() + gone;
  const host = await joinCluster(
    {
      url: stores.url,
      store,
      clock: new SharedClock(systemClock, () => performance.now()),
      timers: systemTimers,
      monotonicMs,
      onFailure: () => {},
    },
    { name: 'b', url: null, site, leaseMs: 3000, goneMs: GONE_MS },
  );
  onTestFinished(() => host.leave());
  expect(await host.listStranded(9)).toEqual([]);
  gone += GONE_MS;
  expect(await host.listStranded(9)).toEqual([{ run_id: 'run_0001', hasSite: true }]);
  // Its own lease has expired in the meantime as well; it returns as another host.
  const before = host.hostId;
  await expect.poll(() => host.isHeld && host.hostId !== before, { timeout: 20_000 }).toBe(true);
  expect(await host.listStranded(9)).toEqual([]);
});
