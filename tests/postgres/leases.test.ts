// Who may write a running run: the rules of leases, take-overs and owners, by the clock of the database.
import { describe, expect, test } from 'vitest';
import {
  forgetDeadHost,
  listDeadHosts,
  listLiveHosts,
  registerHost,
} from '../../src/store/postgres/hosts/host-lease.js';
import type { RunRecord } from '../../src/store/store.js';
import { T0, ask, change, flush, newRun, type RowEdit } from '../store/conformance.js';
import { commit, create, withStores, type Stores } from '../support/postgres-stores.js';

const RUNNING = { set: { status: 'running', epoch: 1 } } as const;
const REFUSED = { committed: false, reason: 'epoch' };
const next = (run: RunRecord) => flush(run.heads.rasp_seq + 1, 1, null, T0 + 1000 + run.heads.rasp_seq);

async function ownerOf(stores: Stores, runId = 'run_0001'): Promise<string | null> {
  const [row] = await stores.query<{ owner: string | null }>('SELECT owner FROM parley.runs WHERE run_id = $1', [
    runId,
  ]);
  return row?.owner ?? null;
}

describe('a lease', () => {
  test('is renewed while it is valid, and never after it expired', async () => {
    const stores = await withStores();
    const { lease, database } = await stores.host('host_1');
    const [before] = await listLiveHosts(database);
    expect(await lease.renew()).toBe(true);
    const [after] = await listLiveHosts(database);
    expect(after?.lease_until).toBeGreaterThanOrEqual(before?.lease_until ?? Infinity);
    expect(after).toMatchObject({ host_id: 'host_1', name: 'name of host_1', url: null, info: {} });
    await stores.expire('host_1');
    expect([await lease.renew(), await lease.renew()]).toEqual([false, false]);
    expect([await listLiveHosts(database), (await listDeadHosts(database)).map((host) => host.host_id)]).toEqual([
      [],
      ['host_1'],
    ]);
  });

  test('expires by time alone, without any action', async () => {
    const stores = await withStores();
    const store = await stores.store();
    const lease = await registerHost(store.database, {
      host_id: 'brief',
      name: 'n\0',
      url: 'http://x\\y',
      ttlMs: 0,
      info: { pid: 1 },
    });
    expect(await lease.renew()).toBe(false);
    expect(await listDeadHosts(store.database)).toMatchObject([
      { host_id: 'brief', name: 'n\0', url: 'http://x\\y', info: { pid: 1 } },
    ]);
  });

  test('is released by its host at once, and removed by others only when it expired', async () => {
    const stores = await withStores();
    const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
    await one.lease.release();
    expect((await listLiveHosts(two.database)).map((host) => host.host_id)).toEqual(['host_2']);
    expect(await one.lease.renew()).toBe(false);
    expect(await forgetDeadHost(one.database, 'host_2')).toBe(false);
    await stores.expire('host_2');
    expect(await forgetDeadHost(one.database, 'host_2')).toBe(true);
    // The release is recorded, so that others know since when its site has had no host.
    expect((await listDeadHosts(one.database)).map((host) => host.host_id)).toEqual(['host_1']);
  });

  test('of a host id that was used before is refused', async () => {
    const stores = await withStores();
    const { database } = await stores.host('host_1');
    await stores.expire('host_1');
    await expect(registerHost(database, { host_id: 'host_1', name: 'again', url: null, ttlMs: 1000 })).rejects.toThrow(
      'duplicate key',
    );
  });
});

describe('a run', () => {
  test('is owned from the start of a turn to its end', async () => {
    const stores = await withStores();
    const host = await stores.host('host_1');
    const running = await commit(host, await create(host), RUNNING);
    expect(await ownerOf(stores)).toBe('host_1');
    const flushed = await commit(host, running, { journal: next(running) });
    expect(await ownerOf(stores)).toBe('host_1');
    await commit(host, flushed, { set: { status: 'waiting_user' }, ask: ask('int_1'), journal: next(flushed) });
    expect(await ownerOf(stores)).toBeNull();
  });

  test('is not started by a host without a valid lease', async () => {
    const stores = await withStores();
    const [host, unknown] = [await stores.host('host_1'), await stores.store({ host: 'host_none' })];
    await stores.expire('host_1');
    const run = await create(host);
    for (const store of [host, unknown]) expect(await store.append(change(run, RUNNING))).toEqual(REFUSED);
    expect(await host.loadRun(run.run_id)).toEqual(run);
  });

  test('that is running is written by its owner alone, and only while its lease is valid', async () => {
    const stores = await withStores();
    const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
    const run = await commit(one, await create(one), RUNNING);
    const changes: RowEdit[] = [
      { journal: next(run) },
      { set: { status: 'failed' } },
      { set: { attempt_number: 2 }, journal: next(run) },
      { set: { epoch: 2 } },
      { set: { status: 'failed', epoch: 2 } },
    ];
    for (const rest of changes) expect(await two.append(change(run, rest))).toEqual(REFUSED);
    await stores.expire('host_1');
    for (const rest of changes.slice(0, 4)) expect(await one.append(change(run, rest))).toEqual(REFUSED);
    // Another host cannot do it either, unless it takes the run over.
    for (const rest of changes.slice(0, 3)) expect(await two.append(change(run, rest))).toEqual(REFUSED);
    expect(await one.loadRun(run.run_id)).toEqual(run);
  });

  test('of a host that was away for too long is not written by it any more, even if nobody took it over', async () => {
    const stores = await withStores();
    const host = await stores.host('host_1');
    const run = await commit(host, await create(host), RUNNING);
    await stores.expire('host_1');
    expect(await host.lease.renew()).toBe(false);
    expect(await host.append(change(run, { journal: next(run) }))).toEqual(REFUSED);
    expect(await host.listOwnedByDead(10)).toEqual([run.run_id]);
  });

  test('that is running gets a cancel request from any host, but nothing else', async () => {
    const stores = await withStores();
    const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
    const run = await commit(one, await create(one), RUNNING);
    const request = { at: T0, actor: null };
    expect(await two.append(change(run, { set: { cancel_requested: request } }))).toEqual(REFUSED);
    await stores.expire('host_2');
    // The owner has appended since: a request does not depend on the output.
    const flushed = await commit(one, run, { journal: next(run) });
    await two.requestCancel(run.run_id, request);
    await two.requestCancel(run.run_id, { at: T0 + 1, actor: { kind: 'user', name: 'late' } });
    const stored = { ...request, unrecorded: true };
    expect(await one.loadRun(run.run_id)).toEqual({ ...flushed, cancel_requested: stored, updated_at: T0 });
    expect(await ownerOf(stores)).toBe('host_1');
  });

  test('that waits or is queued is written by anybody, lease or not', async () => {
    const stores = await withStores();
    const [one, dead] = [await stores.host('host_1'), await stores.store({ host: 'host_dead' })];
    const queued = await create(dead);
    const waiting = await commit(one, await commit(one, queued, RUNNING), {
      set: { status: 'waiting_user' },
      ask: ask('int_1'),
    });
    const resolution = { at: T0, response: 1, actor: null, idempotency_key: null, finish: false };
    const again = await commit(dead, waiting, {
      set: { status: 'queued' },
      resolve: { interaction_id: 'int_1', state: 'answered', resolution },
      journal: next(waiting),
    });
    await commit(dead, again, { set: { status: 'canceled' } });
  });

  test('is written by a store without a host, whatever the leases are', async () => {
    const stores = await withStores();
    const [host, tool] = [await stores.host('host_1'), await stores.store()];
    const run = await commit(host, await create(host), RUNNING);
    const flushed = await commit(tool, run, { journal: next(run) });
    expect(await ownerOf(stores)).toBe('host_1');
    await commit(tool, flushed, { set: { status: 'failed' } });
    expect(await ownerOf(stores)).toBeNull();
  });
});

describe('a take-over', () => {
  test.each(['expired', 'missing'])(
    'of a run whose owner has a lease that is %s makes the run the new host’s, or ends it',
    async (how) => {
      const stores = await withStores();
      const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
      const first = await commit(one, await create(one, 1), RUNNING);
      const second = await commit(one, await create(one, 2), RUNNING);
      if (how === 'expired') await stores.expire('host_1');
      else await one.lease.release();
      expect(await two.listOwnedByDead(10)).toEqual(['run_0001', 'run_0002']);
      expect(await two.listOwnedByDead(1)).toEqual(['run_0001']);
      // Without a higher epoch it is not a takeover.
      expect(await two.append(change(first, { set: { status: 'failed' }, journal: next(first) }))).toEqual(REFUSED);
      const taken = await commit(two, first, { set: { epoch: 2 }, journal: next(first) });
      expect([await ownerOf(stores), taken.epoch]).toEqual(['host_2', 2]);
      await commit(two, second, { set: { epoch: 2, status: 'failed' } });
      expect(await ownerOf(stores, 'run_0002')).toBeNull();
      expect(await two.listOwnedByDead(10)).toEqual([]);
      // The old owner knows an older epoch, and is not the owner.
      expect(await one.append(change(first, { journal: next(first) }))).toEqual(REFUSED);
      expect(await one.append(change(taken, { journal: next(taken) }))).toEqual(REFUSED);
      await commit(two, taken, { journal: next(taken) });
    },
  );

  test('keeps a run running only for a host that has a valid lease itself', async () => {
    const stores = await withStores();
    const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
    const run = await commit(one, await create(one), RUNNING);
    for (const id of ['host_1', 'host_2']) await stores.expire(id);
    expect(await two.append(change(run, { set: { epoch: 2 } }))).toEqual(REFUSED);
    expect(await two.append(change(run, { set: { epoch: 2, status: 'running' } }))).toEqual(REFUSED);
  });

  test('of a run that a store without a host started, which nobody owns', async () => {
    const stores = await withStores();
    const [tool, host] = [await stores.store(), await stores.host('host_1')];
    const run = await commit(tool, await create(tool), RUNNING);
    expect(await host.listOwnedByDead(10)).toEqual([run.run_id]);
    await commit(host, run, { set: { epoch: 2 } });
    expect(await ownerOf(stores)).toBe('host_1');
  });

  test('is won by exactly one of those who try at once', async () => {
    const stores = await withStores();
    const [dead, ...others] = [await stores.host('host_0'), await stores.host('host_1'), await stores.host('host_2')];
    for (let number = 1; number <= 20; number += 1) {
      const run = await commit(dead, await create(dead, number, newRun(number)), RUNNING);
      await stores.query(`UPDATE parley.runs SET owner = 'host_gone' WHERE run_id = $1`, [run.run_id]);
      const outcomes = await Promise.all(
        others.map((store) => store.append(change(run, { set: { epoch: 2 }, journal: next(run) }))),
      );
      expect(outcomes.filter((outcome) => outcome.committed)).toHaveLength(1);
      expect(outcomes).toContainEqual(REFUSED);
      expect(await ownerOf(stores, run.run_id)).toBe(outcomes[0]?.committed ? 'host_1' : 'host_2');
    }
  });

  test('waits for a renewal that is under way, and is refused by it', async () => {
    const stores = await withStores();
    const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
    const run = await commit(one, await create(one), RUNNING);
    await stores.expire('host_1');
    // Like a renewal that started in time and is not committed yet.
    await stores.query('BEGIN');
    await stores.query(
      `UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour' WHERE host_id = 'host_1'`,
    );
    const takeOver = two.append(change(run, { set: { epoch: 2 } }));
    await stores.untilWaiting(1);
    await stores.query('COMMIT');
    expect(await takeOver).toEqual(REFUSED);
  });
});

test('a flush that waited for the run’s row sees the lease as it is afterwards', async () => {
  const stores = await withStores();
  const host = await stores.host('host_1');
  const run = await commit(host, await create(host), RUNNING);
  await stores.expire('host_1');
  await stores.query('BEGIN');
  await stores.query('SELECT FROM parley.runs WHERE run_id = $1 FOR UPDATE', [run.run_id]);
  const flushed = host.append(change(run, { journal: next(run) }));
  await stores.untilWaiting(1);
  await stores.query(
    `UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour' WHERE host_id = 'host_1'`,
  );
  await stores.query('COMMIT');
  expect(await flushed).toMatchObject({ committed: true });
});
