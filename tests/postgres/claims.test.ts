// Which host a run belongs to: claims of queued runs, takeovers, waiting processes, lost sites.
import { expect, test } from 'vitest';
import {
  claimQueued,
  holdProcess,
  isHeldElsewhere,
  isRunElsewhere,
  releaseProcess,
  listOwned,
  listCancelRequests,
  takeOver,
} from '../../src/store/postgres/hosts/claims.js';
import { forgetLeftover, listLeftovers, listStranded } from '../../src/store/postgres/hosts/run-files.js';
import { listDeadHosts, registerHost } from '../../src/store/postgres/hosts/host-lease.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type { RunRecord } from '../../src/store/store.js';
import { ask, newRun, T0 } from '../store/conformance.js';
import { commit, create, withStores } from '../support/postgres-stores.js';

const begin = (store: PostgresStore, run: RunRecord) =>
  commit(store, run, { set: { status: 'running', epoch: run.epoch + 1 } });

test('queued runs are claimed once, oldest first, up to the limit; an unstarted claim expires for others', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  for (let number = 1; number <= 5; number += 1) await create(a, number);
  expect(await a.claimQueued(2, [])).toEqual(['run_0001', 'run_0002']);
  expect(await b.claimQueued(2, [])).toEqual(['run_0003', 'run_0004']);
  expect(await a.claimQueued(5, ['run_0001'])).toEqual(['run_0002', 'run_0005']);
  expect(await b.claimQueued(0, [])).toEqual([]);
  await stores.query(`UPDATE parley.runs SET reserved_until = clock_timestamp() WHERE run_id = 'run_0001'`);
  expect(await b.claimQueued(5, ['run_0003', 'run_0004'])).toEqual(['run_0001']);
});

test('two hundred runs that ten hosts want at once go to one host each', async () => {
  const stores = await withStores();
  const hosts = await Promise.all(Array.from({ length: 10 }, (_, number) => stores.host(`h${number}`)));
  for (let number = 1; number <= 200; number += 1) await create(hosts[0] as PostgresStore, number);
  const claimed: string[] = [];
  await Promise.all(
    hosts.map(async (store) => {
      for (let mine: string[] = []; ;) {
        const batch = await store.claimQueued(3, mine);
        if (batch.length === 0) return;
        claimed.push(...batch);
        mine = [...mine, ...batch];
      }
    }),
  );
  expect(claimed.toSorted()).toEqual(
    Array.from({ length: 200 }, (_, index) => `run_${String(index + 1).padStart(4, '0')}`),
  );
});

test('a host without a lease gets none', async () => {
  const stores = await withStores();
  const a = await stores.host('a');
  await create(a);
  await stores.expire('a');
  expect(await a.claimQueued(1, [])).toEqual([]);
});

test('a run with local files goes to the host of that disk; one with another path only to hosts with it', async () => {
  const stores = await withStores();
  await stores.host('h');
  const store = (site: string, place: string) => stores.store({ host: 'h', site: { site, place } });
  const [a, b, c] = [await store('site_a', '/data'), await store('site_b', '/data'), await store('site_c', '/other')];
  await create(a, 1, { local: true });
  await create(a, 2);
  const claim = (site: string, place: string) =>
    claimQueued(a.database, { host: 'h', site: { site, place } }, { limit: 9, except: [] });
  expect(await claim('site_c', '/other')).toEqual([]);
  expect(await claim('site_b', '/data')).toEqual(['run_0002']);
  expect(await claim('site_a', '/data')).toEqual(['run_0001', 'run_0002']);
  // The host that starts it first has its files.
  await begin(b, (await b.loadRun('run_0002')) as RunRecord);
  expect(await stores.query(`SELECT run_id, site FROM parley.runs ORDER BY run_id`)).toEqual([
    { run_id: 'run_0001', site: 'site_a' },
    { run_id: 'run_0002', site: 'site_b' },
  ]);
  // A run that continues another session moves to the host of that session.
  await create(c, 3, { local: true, beside: 'run_0002' });
  expect(await stores.query(`SELECT site, place FROM parley.runs WHERE run_id = 'run_0003'`)).toEqual([
    { site: 'site_b', place: '/data' },
  ]);
});

test('a run of a dead host is taken over once, with another epoch; one of a living host is not', async () => {
  const stores = await withStores();
  const [a, b, c] = [await stores.host('a'), await stores.host('b'), await stores.host('c')];
  const run = await begin(a, await create(a));
  expect(await isRunElsewhere(a.database, run.run_id)).toBe(true);
  expect(await takeOver(b.database, 'b', run)).toBeNull();
  await stores.expire('a');
  expect(await isRunElsewhere(a.database, run.run_id)).toBe(false);
  expect(await b.listOwnedByDead(9)).toEqual([run.run_id]);
  const outcomes = await Promise.all([takeOver(b.database, 'b', run), takeOver(c.database, 'c', run)]);
  expect(outcomes.filter((outcome) => outcome !== null)).toMatchObject([{ epoch: run.epoch + 1, status: 'running' }]);
  const winner = outcomes[0] ? 'b' : 'c';
  expect([await listOwned(b.database, 'b', 9), await listOwned(b.database, 'c', 9)]).toEqual(
    winner === 'b' ? [[run.run_id], []] : [[], [run.run_id]],
  );
  // Later writes of the dead host are refused.
  await expect(commit(a, run, { set: { status: 'succeeded' } })).rejects.toThrow('epoch');
});

test('a take-over whose answer was lost is known to be one when it is done again', async () => {
  const stores = await withStores();
  const [a, proxy] = [await stores.host('a'), await stores.proxy()];
  await stores.host('b');
  const b = await stores.store({ host: 'b', url: proxy.url });
  const run = await begin(a, await create(a));
  await stores.expire('a');
  const cut = proxy.cutAt('server', run.run_id);
  const taken = takeOver(b.database, 'b', run);
  await cut;
  expect(await taken).toMatchObject({ run_id: run.run_id, epoch: run.epoch + 1 });
});

test('a take-over waits for a renewal that is under way, and then finds the owner alive', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  const run = await begin(a, await create(a));
  await stores.expire('a');
  await stores.query('BEGIN');
  await stores.query(
    `UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 minute' WHERE host_id = 'a'`,
  );
  const taking = takeOver(b.database, 'b', run);
  await stores.untilWaiting(1);
  await stores.query('COMMIT');
  expect(await taking).toBeNull();
});

test('a waiting process reserves its run for its host, until it is released or the host dies', async () => {
  const stores = await withStores();
  const [a, b] = [await stores.host('a'), await stores.host('b')];
  let run = await begin(a, await create(a));
  await holdProcess(a.database, 'a', run.run_id);
  await holdProcess(b.database, 'b', run.run_id);
  run = await commit(a, run, { set: { status: 'waiting_user' }, ask: ask('int_1') });
  expect(await isRunElsewhere(b.database, run.run_id)).toBe(true);
  expect([
    await isHeldElsewhere(a.database, 'a', run.run_id),
    await isHeldElsewhere(b.database, 'b', run.run_id),
  ]).toEqual([false, true]);
  run = await commit(b, run, {
    set: { status: 'queued' },
    resolve: {
      interaction_id: 'int_1',
      state: 'answered',
      resolution: { at: T0, response: 'x', actor: null, idempotency_key: null, finish: false },
    },
  });
  expect(await b.claimQueued(1, [])).toEqual([]);
  expect(await a.claimQueued(1, [])).toEqual([run.run_id]);
  await stores.query('UPDATE parley.runs SET reserved_until = NULL');
  await releaseProcess(b.database, 'b', run.run_id);
  expect(await b.claimQueued(1, [])).toEqual([]);
  await releaseProcess(a.database, 'a', run.run_id);
  expect(await b.claimQueued(1, [])).toEqual([run.run_id]);
});

test('a queued run is stranded when its site has had no host for the limit, not when one has just left', async () => {
  const stores = await withStores();
  await stores.host('x');
  const a = await stores.store({ host: 'x', site: { site: 'site_a', place: '/data' } });
  await create(a, 1, { local: true });
  await stores.query(`UPDATE parley.hosts SET site = 'site_a'`);
  expect(await listStranded(a.database, 60_000, 9)).toEqual([]);
  await stores.expire('x');
  expect(await listStranded(a.database, 60_000, 9)).toEqual([]);
  await stores.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() - interval '2 minutes'`);
  expect(await listStranded(a.database, 60_000, 9)).toEqual([{ run_id: 'run_0001', hasSite: true }]);
  expect(await listDeadHosts(a.database)).toMatchObject([{ site: 'site_a' }]);
});

test('a queued run without files is stranded when no host with its paths was there for so long', async () => {
  const stores = await withStores();
  await stores.host('x');
  const a = await stores.store({ host: 'x', site: { site: 'site_a', place: '/data' } });
  await create(a);
  await stores.query(`UPDATE parley.hosts SET site = 'site_b', place = '/data'`);
  expect(await listStranded(a.database, 0, 9)).toEqual([]);
  await stores.query(`UPDATE parley.hosts SET place = '/other'`);
  expect(await listStranded(a.database, 60_000, 9)).toEqual([{ run_id: 'run_0001', hasSite: false }]);
  expect(await listStranded(a.database, Date.now(), 9)).toEqual([]);
});

test('files of a deleted run are left to the host of their disk, or any with their path, until removed', async () => {
  const stores = await withStores();
  const [a, shared] = [
    await stores.store({ site: { site: 'site_a', place: '/data' } }),
    await stores.store({ site: { site: null, place: '/shared' } }),
  ];
  await create(a, 1, { local: true });
  await create(shared, 2);
  for (const [store, id] of [
    [a, 'run_0001'],
    [shared, 'run_0002'],
  ] as const) {
    await commit(store, (await a.loadRun(id)) as RunRecord, { set: { status: 'canceled' } });
    expect(await a.deleteRun(id)).toBe('deleted');
  }
  const left = (site: string | null, place: string, except: string[] = []) =>
    listLeftovers(a.database, { site, place }, { except, limit: 9 });
  expect([await left('site_a', '/moved'), await left('site_b', '/data'), await left(null, '/shared')]).toEqual([
    ['run_0001'],
    [],
    ['run_0002'],
  ]);
  expect(await left('site_a', '/data', ['run_0001'])).toEqual([]);
  await forgetLeftover(a.database, 'run_0001');
  expect(await left('site_a', '/data')).toEqual([]);
});

test('a run whose files moved with their disk continues there; one without files does not', async () => {
  const stores = await withStores();
  await stores.host('h');
  const a = await stores.store({ host: 'h', site: { site: 'site_a', place: '/old' } });
  await create(a, 1, { local: true });
  await create(a, 2);
  expect(
    await claimQueued(a.database, { host: 'h', site: { site: 'site_a', place: '/new' } }, { limit: 9, except: [] }),
  ).toEqual(['run_0001']);
  expect(
    await claimQueued(a.database, { host: 'h', site: { site: 'site_b', place: '/new' } }, { limit: 9, except: [] }),
  ).toEqual([]);
});

test('a run whose folder another run uses is not deleted, in either order', async () => {
  const stores = await withStores();
  const a = await stores.store({ site: { site: 'site_a', place: '/data' } });
  const spec = { ...newRun(1).spec, cwd: '/data/runs/run_0001/workspace' };
  await commit(a, await create(a, 1, { spec }), { set: { status: 'canceled' } });
  const fork = await create(a, 2, { beside: 'run_0001', spec });
  expect(await a.deleteRun('run_0001')).toBe('session_in_use');
  await commit(a, fork, { set: { status: 'canceled' } });
  expect(await a.deleteRun('run_0001')).toBe('deleted');
});

test('a wish to cancel a run that waits is found when no living host has its process', async () => {
  const stores = await withStores();
  const a = await stores.host('a');
  let run = await begin(a, await create(a));
  await holdProcess(a.database, 'a', run.run_id);
  run = await commit(a, run, { set: { status: 'waiting_user' }, ask: ask('int_1') });
  expect(await listCancelRequests(a.database, 9)).toEqual([]);
  await commit(a, run, { set: { cancel_requested: { at: T0, actor: null } } });
  expect(await listCancelRequests(a.database, 9)).toEqual([]);
  await stores.expire('a');
  expect(await listCancelRequests(a.database, 9)).toEqual([run.run_id]);
});

test('a short-lived host claims runs it created or changed, and no others while a permanent host lives', async () => {
  const stores = await withStores();
  await stores.host('h');
  await registerHost((await stores.store()).database, {
    host_id: 'server',
    name: 's',
    url: null,
    ttlMs: 600_000,
    info: { serves: true },
  });
  const [server, command] = [await stores.store({ host: 'h' }), await stores.store({ host: 'h', ownOnly: true })];
  await create(server, 1);
  const answered = await begin(server, await create(server, 2));
  const waiting = await commit(server, answered, { set: { status: 'waiting_user' }, ask: ask('int_2') });
  await create(command, 3);
  expect(await command.claimQueued(9, [])).toEqual(['run_0003']);
  await commit(command, waiting, {
    set: { status: 'queued' },
    resolve: {
      interaction_id: 'int_2',
      state: 'answered',
      resolution: { at: T0, response: 'x', actor: null, idempotency_key: null, finish: false },
    },
  });
  expect((await command.claimQueued(9, [])).toSorted()).toEqual(['run_0002', 'run_0003']);
  await stores.expire('server');
  expect((await command.claimQueued(9, [])).toSorted()).toEqual(['run_0001', 'run_0002', 'run_0003']);
  expect(await server.claimQueued(9, [])).toContain('run_0001');
});
