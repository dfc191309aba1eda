// Commits of one store notify the listeners of the others, and possibly missed notifications are reported.
import { expect, test } from 'vitest';
import { eventChannel } from '../../src/store/postgres/connection/compose.js';
import type { Committed, RunRecord } from '../../src/store/store.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import { change, T0, ask, flush, newRun } from '../store/conformance.js';
import { until } from '../support/postgres.js';
import { commit, create, withStores } from '../support/postgres-stores.js';

function listen(store: PostgresStore): { commits: Committed[]; missed: () => number } {
  const commits: Committed[] = [];
  let missed = 0;
  store.onCommitted((each) => {
    commits.push(each);
    throw new Error('not our problem');
  });
  store.onMissed(() => {
    missed += 1;
    throw new Error('not our problem');
  });
  return { commits, missed: () => missed };
}

const brief = ({ run_id: runId, status, asked, resolved, deleted, origin }: Committed) => [
  runId,
  status,
  asked,
  resolved,
  deleted,
  origin,
];

// The runs of commits elsewhere that only added events.
const events = ({ commits }: { readonly commits: Committed[] }): string[] =>
  commits.filter(({ origin, status }) => origin === 'elsewhere' && status === undefined).map((each) => each.run_id);

const everything = (origin: string) => [
  ['run_0001', 'queued', undefined, undefined, undefined, origin],
  ['run_0001', 'running', undefined, undefined, undefined, origin],
  ['run_0001', undefined, undefined, undefined, undefined, origin],
  ['run_0001', 'waiting_user', 'int_1', undefined, undefined, origin],
  ['run_0001', 'canceled', undefined, 'int_1', undefined, origin],
  ['run_0001', undefined, undefined, undefined, true, origin],
];

test('a store gets each commit of another store once, in order, even of the same host', async () => {
  const stores = await withStores();
  const [one, two, same] = [
    await stores.host('host_1'),
    await stores.host('host_2'),
    await stores.store({ host: 'host_1' }),
  ];
  const [here, there, beside] = [listen(one), listen(two), listen(same)];
  two.follow('run_0001');
  await until('the channel is open', () => there.commits.length === 1);
  there.commits.length = 0;
  const running = await commit(one, await create(one), { set: { status: 'running', epoch: 1 } });
  const flushed = await commit(one, running, { journal: flush(3, 1, null, T0 + 10) });
  const waiting = await commit(one, flushed, { set: { status: 'waiting_user' }, ask: ask('int_1') });
  await commit(one, waiting, {
    set: { status: 'canceled' },
    resolve: {
      interaction_id: 'int_1',
      state: 'canceled',
      resolution: { at: T0, response: null, actor: null, idempotency_key: null, finish: false },
    },
  });
  await one.deleteRun(waiting.run_id);
  await until('the deletion is heard of', () =>
    [there, beside].every(({ commits }) => commits.some(({ deleted }) => deleted)),
  );
  expect(here.commits.map(brief)).toEqual(everything('here'));
  expect(there.commits.map(brief)).toEqual(everything('elsewhere'));
  // Without a reader of the run, nothing about commits that only add events.
  expect(beside.commits.map(brief)).toEqual(everything('elsewhere').filter((_, index) => index !== 2));
  expect(there.commits.every(({ journal, ms }) => journal === undefined && ms === 0)).toBe(true);
  expect([here, there, beside].map(({ missed }) => missed())).toEqual([0, 0, 0]);
});

test('events of a run reach only the hosts that follow it, until they stop', { timeout: 60_000 }, async () => {
  const HOSTS = 20;
  const stores = await withStores();
  const all = await Promise.all(Array.from({ length: HOSTS }, (_, index) => stores.host(`host_${index}`)));
  const heard = all.map(listen);
  const runs = await Promise.all(
    all.map(async (store, index) =>
      commit(store, await create(store, index + 1), { set: { status: 'running', epoch: 1 } }),
    ),
  );
  const isEverywhere = (changes: number) => () =>
    heard.every(({ commits }) => commits.filter(({ status }) => status !== undefined).length === changes);
  await until('every host has the changes of all', isEverywhere(2 * HOSTS));
  // Its channel has no other of these runs.
  const followed = runs.findIndex(({ run_id: id }, index) =>
    runs.every((run, other) => other === index || eventChannel(run.run_id) !== eventChannel(id)),
  );
  const [reader, id] = [(followed + 1) % HOSTS, runs[followed]?.run_id ?? ''];
  const [first, second] = [all[reader]?.follow(id), all[reader]?.follow(id)];
  await until('the channel is open', () => events(heard[reader] as never).length === 1);
  const flushAll = async (round: number): Promise<void> => {
    await Promise.all(
      all.map(async (store, index) => {
        runs[index] = await commit(store, runs[index] as RunRecord, {
          journal: flush(2 + round, 1, null, T0 + 1_000_000 * round),
        });
      }),
    );
    // All changes of rows come after these events.
    await Promise.all(all.map((store) => store.createRun(newRun(HOSTS * round + all.indexOf(store) + 1))));
    await until('every host has the new runs', isEverywhere((2 + round) * HOSTS));
  };
  await flushAll(1);
  first?.();
  await flushAll(2);
  expect(heard.map(events)).toEqual(all.map((_, index) => (index === reader ? [id, id, id] : [])));
  second?.();
  await flushAll(3);
  expect(heard.flatMap(events)).toEqual([id, id, id]);
});

test('a reader of a run is notified after a reconnect, and again of each event', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
  const { commits, missed } = listen(two);
  const running = await commit(one, await create(one), { set: { status: 'running', epoch: 1 } });
  two.follow(running.run_id);
  await until('the channel is open', () => events({ commits }).length === 1);
  await stores.terminate(`query LIKE 'LISTEN%'`);
  await until('it is notified', () => missed() === 1 && events({ commits }).length === 2);
  await commit(one, running, { journal: flush(3, 1, null, T0 + 10) });
  await until('it has the event', () => events({ commits }).length === 3);
});

test('a refused change is announced to nobody', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.store(), await stores.store()];
  const { commits } = listen(two);
  const run = await create(one);
  await one.append(change({ ...run, epoch: 7 }, { journal: flush(3, 1, null, T0 + 10) }));
  await expect(one.append(change(run, { journal: flush(3, 1, 9, T0 + 10) }))).rejects.toThrow();
  await one.deleteRun(run.run_id);
  await create(one, 2);
  await until('the second run is heard of', () => commits.some(({ run_id: id }) => id === 'run_0002'));
  expect(commits.map(({ run_id: id }) => id)).toEqual(['run_0001', 'run_0002']);
});

test('a listener whose connection was ended listens again, and says that something may have been missed', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.store(), await stores.store()];
  const { commits, missed } = listen(two);
  for (let round = 1; round <= 3; round += 1) {
    await until(
      'both listen',
      async () =>
        (
          await stores.query(
            `SELECT
             FROM pg_stat_activity
             WHERE datname = current_database() AND query LIKE 'LISTEN%' AND state = 'idle'`,
          )
        ).length === 2,
    );
    expect(await stores.terminate(`query LIKE 'LISTEN%'`)).toBe(2);
    await until('it is notified', () => missed() === round);
    await create(one, round);
    await until('it hears again', () => commits.some(({ run_id: id }) => id === `run_000${round}`));
  }
  expect(missed()).toBe(3);
});

test('a connection that went silent is detected and replaced, and possibly missed commits are reported', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const [one, two] = [await stores.store(), await stores.store({ url: proxy.url, checkMs: 100 })];
  const { commits, missed } = listen(two);
  const listening = () =>
    stores.query<{ pid: number }>(
      `SELECT pid
       FROM pg_stat_activity
       WHERE datname = current_database() AND query IN ('LISTEN parley_commits', 'SELECT')`,
    );
  const before = (await listening()).length;
  const letGo = proxy.hold();
  await create(one, 1);
  await until('it has given the silent one up', async () => (await listening()).length < before);
  letGo();
  await until('it is notified', () => missed() === 1);
  await create(one, 2);
  await until('it hears again', () => commits.some(({ run_id: id }) => id === 'run_0002'));
  expect(commits.map(({ run_id: id }) => id)).toEqual(['run_0002']);
});

test('unrelated notifications are ignored', async () => {
  const stores = await withStores();
  const store = await stores.store();
  const { commits } = listen(store);
  for (const payload of ['', 'no json', 'null', '[]', '{"r":1}'])
    await stores.query(`SELECT pg_notify('parley_commits', $1)`, [payload]);
  await stores.query(`SELECT pg_notify('parley_commits', '{"i":"x","h":null,"r":"run_x"}')`);
  await until('the last one is heard', () => commits.length > 0);
  expect(commits.map(brief)).toEqual([['run_x', undefined, undefined, undefined, undefined, 'elsewhere']]);
});

test('a store can be closed while its database is away', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  const store = await stores.store({ url: proxy.url });
  proxy.shut();
  await expect(store.loadRun('run_0001')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' });
  await store.close();
});

test('a store that follows many runs at once asks its connection for one thing at a time', async () => {
  const stores = await withStores();
  const [one, two] = [await stores.host('host_1'), await stores.host('host_2')];
  const there = listen(two);
  const warnings: Error[] = [];
  const note = (warning: Error): void => void warnings.push(warning);
  process.on('warning', note);
  const runs = Array.from({ length: 40 }, (_, index) => `run_${String(index).padStart(4, '0')}`);
  const stops = runs.map((run) => two.follow(run));
  await until('all channels are open', () => runs.every((run) => events(there).includes(run)));
  for (const stop of stops.slice(0, 20)) stop();
  // The connection still works.
  two.follow('run_0099');
  await until('the last channel is open', () => events(there).includes('run_0099'));
  process.off('warning', note);
  expect(warnings).toEqual([]);
  await Promise.all([one, two].map((store) => store.close()));
});
