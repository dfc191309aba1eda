// Engines of the hosts of a database: a run is created if any live host can run it.
import { expect, onTestFinished, test } from 'vitest';
import { joinCluster } from '../../src/ownership/postgres/join-cluster.js';
import { SharedClock } from '../../src/ownership/postgres/shared-clock.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { systemTimers } from '../../src/process/timers.js';
import { withStores } from '../support/postgres-stores.js';

test('a run of an engine is refused only if no other live host that serves has it, or does not say', async () => {
  const stores = await withStores();
  const join = async (name: string, info: JsonObject) => {
    const site = { site: `site_${name}`, place: `/${name}` };
    const store = await stores.store({ site });
    const host = await joinCluster(
      {
        url: stores.url,
        store,
        clock: new SharedClock(systemClock, () => performance.now()),
        timers: systemTimers,
        monotonicMs: () => performance.now(),
        onFailure: () => {},
      },
      { name, url: null, site, leaseMs: 30_000, goneMs: 60_000, info },
    );
    let isThere = true;
    const leave = async (): Promise<void> => {
      if (isThere) await host.leave();
      isThere = false;
    };
    onTestFinished(leave);
    return { host, leave };
  };
  const { host } = await join('a', { serves: true, engines: ['codex'] });
  // It checks its own programs itself.
  expect(await host.hasEngine('codex')).toBe(false);
  await join('worker', { serves: false, engines: ['codex'] });
  expect(await host.hasEngine('codex')).toBe(false);
  const other = await join('b', { serves: true, engines: ['codex', 'gemini'] });
  expect([await host.hasEngine('codex'), await host.hasEngine('gemini'), await host.hasEngine('opencode')]).toEqual([
    true,
    true,
    false,
  ]);
  await other.leave();
  expect(await host.hasEngine('codex')).toBe(false);
  await join('old', { serves: true });
  expect(await host.hasEngine('opencode')).toBe(true);
});
