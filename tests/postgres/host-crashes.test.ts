// The host that takes over a run counts the crash of its owner; a clean stop or a lost lease is not a crash.
import { expect, test } from 'vitest';
import { forgiveCrashes, takeOver } from '../../src/store/postgres/hosts/claims.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type { RunRecord } from '../../src/store/store.js';
import { ask } from '../store/conformance.js';
import { openClusterBench } from '../support/cluster-bench.js';
import { commit, create, withStores, type Stores } from '../support/postgres-stores.js';

const crashesOf = async (store: PostgresStore, id = 'run_0001') => ((await store.loadRun(id)) as RunRecord).crashes;
const begin = (store: PostgresStore, run: RunRecord) =>
  commit(store, run, { set: { status: 'running', epoch: run.epoch + 1 } });
// The claim of a dead host lasts for a few seconds more.
const endClaims = (stores: Stores) => stores.query('UPDATE parley.runs SET reserved_until = clock_timestamp()');

test('a claim of a dead host counts as a crash, in the statement that claims again, and once', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  await create(a);
  await a.claimQueued(1, []);
  await stores.expire('a');
  await endClaims(stores);
  expect(await b.claimQueued(1, [])).toEqual(['run_0001']);
  expect(await b.claimQueued(1, [])).toEqual(['run_0001']);
  expect(await crashesOf(b)).toBe(1);
});

test('a claim of a living host that was not begun in time is no crash', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  await create(a);
  await a.claimQueued(1, []);
  await endClaims(stores);
  expect(await b.claimQueued(1, [])).toEqual(['run_0001']);
  expect(await crashesOf(b)).toBe(0);
});

test('a host that stops cleanly lets go of its claims, and another may begin them at once', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  await create(a);
  await a.claimQueued(1, []);
  await a.releaseStarts();
  await a.lease.release();
  expect(await b.claimQueued(1, [])).toEqual(['run_0001']);
  expect(await crashesOf(b)).toBe(0);
});

test('a running run of a dead host counts once, even if the host taking it over dies before ending it', async () => {
  const stores = await withStores();
  const [a, b, c] = [await stores.host('a'), await stores.host('b'), await stores.host('c')];
  const run = await begin(a, await create(a));
  await stores.expire('a');
  const taken = (await takeOver(b.database, 'b', run)) as RunRecord;
  expect(taken.crashes).toBe(1);
  await stores.expire('b');
  expect(await takeOver(c.database, 'c', taken)).toMatchObject({ crashes: 1 });
});

test('a live host that lost its lease has not crashed: its crash count is reverted', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  for (const number of [1, 2]) await create(a, number);
  await a.claimQueued(2, []);
  await stores.expire('a');
  await endClaims(stores);
  await b.claimQueued(1, []);
  expect(await crashesOf(b)).toBe(1);
  await forgiveCrashes(a.database, 'a');
  expect(await b.claimQueued(2, [])).toEqual(['run_0001', 'run_0002']);
  expect([await crashesOf(b), await crashesOf(b, 'run_0002')]).toEqual([0, 0]);
});

test('the retry of a run inherits its crashes; a question ends the count', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  const run = await begin(a, await create(a));
  await stores.expire('a');
  await takeOver(b.database, 'b', run);
  const retry = await create(b, 2, { crashes_of: run.run_id });
  expect(retry.crashes).toBe(1);
  expect(await b.loadRun(retry.run_id)).toEqual(retry);
  const running = await begin(b, retry);
  expect(running.crashes).toBe(1);
  expect(await commit(b, running, { set: { status: 'waiting_user' }, ask: ask('int_1') })).toMatchObject({
    crashes: 0,
  });
});

test('a run that two hosts have crashed with fails instead of starting a third time', async () => {
  const bench = await openClusterBench({
    // Both hosts died before this one looks.
    store: (store) =>
      Object.assign(store, {
        claimQueued: async (limit: number, except: readonly string[]) => {
          await bench.stores.query(`UPDATE parley.runs SET crashed_by = '{a,b}' WHERE status = 'queued'`);
          return Object.getPrototypeOf(store).claimQueued.call(store, limit, except) as Promise<string[]>;
        },
      }),
  });
  const { run_id: id } = await bench.orchestrator.create({ engine: 'codex', prompt: '[[done 1]]' });
  await expect.poll(async () => ((await bench.store.loadRun(id)) as RunRecord).status).toBe('failed');
  expect(await bench.store.loadRun(id)).toMatchObject({
    error: { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', details: { reason: 'HOST_CRASHED_TWICE', crashes: 2 } },
    epoch: 0,
  });
  await expect.poll(() => bench.doubts(id), { timeout: 15_000 }).toEqual([]);
});
