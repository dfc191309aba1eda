// Broken connections: nothing crashes, nothing is stored twice, and the outcome of every change is determined.
import { describe, expect, test } from 'vitest';
import { nextDigest } from '../../src/store/digest.js';
import type { RunRecord } from '../../src/store/store.js';
import { T0, ask, change, delivery, flush, newRun } from '../store/conformance.js';
import { until } from '../support/postgres.js';
import { commit, create, withStores } from '../support/postgres-stores.js';

// The response to a flush and the end of a transaction; the client names its statements.
const [FLUSHED, COMMITTED, FLUSH, COMMIT] = ['SELECT 1\0', 'COMMIT\0', '\0flush\0', '\0commit\0'];
const small = { connections: 1 };

test('a call in an outage is refused with a reason without the password; the next works after the outage', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url });
  const run = await create(store);
  for (let round = 0; round < 2; round += 1) {
    proxy.shut();
    const calls = [
      () => store.loadRun(run.run_id),
      () => store.listRuns({ limit: 1 }),
      () => store.createRun(newRun(9)),
      () => store.append(change(run, { journal: flush(9, 1, null) })),
      () => store.deleteRun(run.run_id),
      () => store.nextDelivery(T0),
    ];
    // A change is retried for a while before it is refused; many at once take no longer than one.
    for (const error of await Promise.all(
      calls.map((call) =>
        call().then(
          () => null,
          (reason: unknown) => reason as Error & { code: string },
        ),
      ),
    )) {
      expect(error).toMatchObject({
        name: 'RequestError',
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('cannot be reached') as string,
      });
      expect(JSON.stringify([error?.message, error?.stack, error])).not.toContain(new URL(stores.url).password);
    }
    proxy.open();
    expect(await store.loadRun(run.run_id)).toEqual(run);
  }
  expect(await store.loadRun('run_0009')).toBeNull();
}, 120_000);

test('connections that the server ended are replaced: no call fails because of them', async () => {
  const stores = await withStores();
  const store = await stores.store();
  let run = await create(store);
  for (let round = 0; round < 10; round += 1) {
    // Several that are idle, which break all at once.
    await Promise.all(Array.from({ length: 5 }, () => store.countRuns()));
    expect(await stores.terminate()).toBeGreaterThanOrEqual(1);
    if (round % 3 === 0) await store.loadRun(run.run_id);
    run = await commit(
      store,
      run,
      round % 2 === 0
        ? { journal: flush(run.heads.rasp_seq + 1, 1, null, T0 + 100 + round) }
        : { set: { attempt_number: round + 2 }, journal: flush(run.heads.rasp_seq + 1, 1, null, T0 + 100 + round) },
    );
    await stores.terminate();
    await create(store, round + 2);
  }
  expect(run.heads.rasp_seq).toBe(12);
  expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
  expect(await store.listQueued(100)).toHaveLength(11);
});

describe.each([
  { label: 'a flush', before: FLUSH, after: FLUSHED, rest: {} },
  {
    way: 'another change',
    before: COMMIT,
    after: COMMITTED,
    rest: { set: { status: 'waiting_user' }, ask: ask('int_1'), deliveries: [delivery('dlv_1')] },
  },
] as const)('$way whose connection breaks', ({ before, after, rest }) => {
  async function prepare() {
    const stores = await withStores();
    const proxy = await stores.proxy();
    const [store, other] = [await stores.store({ url: proxy.url, ...small }), await stores.store()];
    // Both statements were prepared before, so only their names are sent.
    let run = await commit(store, await create(store), { journal: flush(3, 1, null, T0 + 10) });
    run = await commit(store, run, { set: { attempt_number: 2 } });
    return { stores, proxy, store, other, run, wanted: change(run, { ...rest, journal: flush(4, 2, 3, T0 + 20) }) };
  }

  test('before the server received it is still executed', async () => {
    const { proxy, store, other, run, wanted } = await prepare();
    const cut = proxy.cutAt('client', before);
    const outcome = await store.append(wanted);
    await cut;
    const stored = (await other.loadRun(run.run_id)) as RunRecord;
    expect(outcome).toEqual({ committed: true, heads: stored.heads });
    expect(stored.heads).toEqual({
      rasp_seq: 5,
      fcmp_seq: 4,
      ts: T0 + 21,
      digest: nextDigest(run.heads.digest, wanted.lines!.rasp.bytes),
    });
  });

  test('after the server has done it is not done again, and known to be done', async () => {
    const { proxy, store, other, run, wanted } = await prepare();
    let notices = 0;
    store.onCommitted(({ origin }) => (notices += origin === 'here' ? 1 : 0));
    const cut = proxy.cutAt('server', after);
    const outcome = await store.append(wanted);
    await cut;
    const stored = (await other.loadRun(run.run_id)) as RunRecord;
    expect(outcome).toEqual({ committed: true, heads: stored.heads });
    expect(stored.heads.rasp_seq).toBe(5);
    expect(await other.readJournal(run.run_id, 'rasp', { limit: 100 })).toHaveLength(5);
    expect(await other.countDeliveries()).toEqual({ pending: 'deliveries' in rest ? 1 : 0, given_up: 0 });
    expect(notices).toBe(1);
  });

  test('and is confirmed only after later changes is known as stored, with its own heads', async () => {
    const { proxy, store, other, run, wanted } = await prepare();
    const cut = proxy.cutAt('server', after, { close: true });
    const outcome = store.append(wanted);
    await cut;
    const stored = (await other.loadRun(run.run_id)) as RunRecord;
    await commit(other, stored, { set: { attempt_number: 7 }, journal: flush(6, 1, null, T0 + 50) });
    proxy.open();
    expect(await outcome).toEqual({ committed: true, heads: stored.heads });
  });

  test('while another one was quicker is refused', async () => {
    const { proxy, store, other, run, wanted } = await prepare();
    const cut = proxy.cutAt('client', before, { close: true });
    const outcome = store.append(wanted);
    await cut;
    await other.append(change(run, { journal: flush(4, 2, 3, T0 + 30) }));
    proxy.open();
    expect(await outcome).toEqual({ committed: false, reason: 'seq' });
  });
});

test('a change without events whose answer was lost is known by its own mark', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url, ...small });
  const run = await commit(store, await create(store), { set: { attempt_number: 2 } });
  const cut = proxy.cutAt('server', COMMITTED);
  expect(await store.append(change(run, { set: { status: 'waiting_user' }, ask: ask('int_1') }))).toEqual({
    committed: true,
    heads: run.heads,
  });
  await cut;
  expect(await store.loadRun(run.run_id)).toMatchObject({ status: 'waiting_user' });
});

test('a run is created or deleted once although the response to its creation or deletion was lost', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url, ...small });
  await create(store, 9);
  for (const [number, from, bytes] of [
    [1, 'client', COMMIT],
    [2, 'server', COMMITTED],
  ] as const) {
    let cut = proxy.cutAt(from, bytes);
    const outcome = await store.createRun(newRun(number));
    await cut;
    expect(outcome).toMatchObject({ created: true });
    const run = (await store.loadRun(`run_000${number}`)) as RunRecord;
    expect('run' in outcome && outcome.run).toEqual(run);
    await commit(store, run, { set: { status: 'canceled' } });
    cut = proxy.cutAt(from, bytes);
    expect(await store.deleteRun(run.run_id)).toBe('deleted');
    await cut;
    expect(await store.loadRun(run.run_id)).toBeNull();
  }
});

test('a delivery whose settling was not answered is settled once', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url, ...small });
  await commit(store, await create(store), { deliveries: ['dlv_1', 'dlv_2', 'dlv_3'].map((id) => delivery(id)) });
  for (const [id, outcome, tag] of [
    ['dlv_1', { type: 'delivered' }, 'DELETE 1\0'],
    ['dlv_2', { type: 'retry', at: T0 + 6000, error: 'x' }, 'UPDATE 1\0'],
    ['dlv_3', { type: 'given_up', at: T0, error: 'x' }, 'UPDATE 1\0'],
  ] as const) {
    const cut = proxy.cutAt('server', tag);
    expect(await store.finishDelivery(id, outcome)).toBe(true);
    await cut;
  }
  expect(await store.nextDelivery(T0 + 9000)).toMatchObject({ delivery_id: 'dlv_2', tries: 1 });
  expect(await store.countDeliveries()).toEqual({ pending: 1, given_up: 1 });
});

test('a change that cannot be found out about is refused as unknown, not as failed', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url, ...small });
  const run = await commit(store, await create(store), { journal: flush(3, 1, null, T0 + 10) });
  const cut = proxy.cutAt('server', FLUSHED, { close: true });
  const outcome = store.append(change(run, { journal: flush(4, 1, null, T0 + 20) }));
  await cut;
  await expect(outcome).rejects.toMatchObject({
    code: 'STORE_UNAVAILABLE',
    message: expect.stringContaining('not known whether') as string,
  });
});

test('a flush takes one round trip: it is stored before anything was answered', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const [store, other] = [await stores.store({ url: proxy.url, ...small }), await stores.store()];
  const run = await commit(store, await create(store), { journal: flush(3, 1, null, T0 + 10) });
  const letGo = proxy.hold();
  const flushed = store.append(change(run, { journal: flush(4, 5, 3, T0 + 20) }));
  await until('it is stored', async () => (await other.loadRun(run.run_id))?.heads.rasp_seq === 8);
  letGo();
  expect(await flushed).toMatchObject({ committed: true, heads: { rasp_seq: 8, fcmp_seq: 7 } });
});
