// parley import: the runs of a data directory are in the database, byte for byte, and continue there.
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { lockDataDir, openDataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { Store } from '../../src/store/store.js';
import {
  createSite,
  expectLines,
  onTerminal,
  parley,
  start,
  untilFree,
  untilRun,
  type Site,
} from '../support/command.js';
import { until, withDatabase, type TestDatabase } from '../support/postgres.js';
import { commit, create, withStores } from '../support/postgres-stores.js';
import { startServer } from '../support/served-process.js';
import { ask, delivery, flush, lines, T0 } from '../store/conformance.js';

const ASK = '[[ask Which database? | Postgres | SQLite]] [[done "ok"]]';
const ALL = { limit: Number.MAX_SAFE_INTEGER };
const ODD = 'nul \0, lone \ud800, pair \u{1f98a}, back\\slash \\u0000, 漢字, \u2028';
// For texts outside of JSON: SQLite's driver ends them at a NUL and replaces a lone surrogate.
const KEY = 'pair \u{1f98a}, back\\slash \\u0000, 漢字, \u2028';
const idOf = (number: number) => `run_${String(number).padStart(26, '0')}`;

// A separate store in a data directory, closed before it is imported.
async function fill(site: Site, work: (store: Store) => Promise<void>): Promise<void> {
  const data = await openDataDir(site.data, { pid: process.pid });
  try {
    await work(data.store);
  } finally {
    await data.close();
  }
}

const ended = async (
  store: Store,
  number: number,
  changes: Parameters<typeof create>[2] = {},
  journal = flush(3, 2, 3, T0 + 9000),
) =>
  commit(store, await create(store, number, { run_id: idOf(number), ...changes }), {
    set: { status: 'canceled' },
    journal,
  });

function importInto({ url }: Pick<TestDatabase, 'url'>, site: Site, ...args: string[]) {
  return parley(site, ['import', ...args], { env: { PARLEY_DATABASE_URL: url } });
}

async function expectImported(
  database: Pick<TestDatabase, 'url'>,
  site: Site,
  expected: { copied: number; known: number },
): Promise<void> {
  const { code, stdout, stderr } = await importInto(database, site, '--json');
  expect({ code, stderr, lines: expectLines(stdout) }).toMatchObject({
    code: 0,
    stderr: '',
    lines: [{ type: 'import', ...expected, refused: [] }],
  });
}

async function ownDatabase(options?: { empty: boolean }): Promise<TestDatabase> {
  const database = await withDatabase(options);
  onTestFinished(() => database.drop());
  return database;
}

test('imported ended, failed and waiting runs verify and continue on a server on the same data directory', async () => {
  const database = await ownDatabase();
  const site = createSite();
  const play = (...args: string[]) =>
    parley(site, ['run', 'rehearsal', '-', '--scratch', ...args], {
      stdin: args.includes('-i')
        ? ASK
        : args.includes('fails=1')
          ? '[[fail]]'
          : `${ODD} [[say ${ODD}]] [[done {"ok": true}]]`,
    });
  expect((await play('--label', 'team=漢字')).code).toBe(0);
  expect((await play('--label', 'fails=1')).code).toBe(1);
  expect((await play('-i')).code).toBe(3);
  await untilFree(site);
  const waiting = (await untilRun(site, 'waiting_user')).run_id;
  const lines = async (env: Record<string, string>) =>
    expectLines((await parley(site, ['ls', '--json'], { env })).stdout);
  const before = await lines({});
  const size = statSync(join(site.data, 'parley.db')).size;
  await expectImported(database, site, { copied: 3, known: 0 });
  const env = { PARLEY_DATABASE_URL: database.url };
  expect(await lines(env)).toEqual(before);
  expect(await lines({})).toEqual(before);
  expect(statSync(join(site.data, 'parley.db')).size).toBe(size);
  expect(expectLines((await parley(site, ['ls', '--json', '--label', 'team=漢字'], { env })).stdout)).toHaveLength(1);
  const verified = await parley(site, ['verify', '--all'], { env });
  expect(verified.code, verified.stdout).toBe(0);

  const server = await startServer({ ...site, env: { ...site.env, ...env } });
  expect(await database.query('SELECT DISTINCT site, place FROM parley.runs')).toEqual([
    { site: readFileSync(join(site.data, 'site'), 'utf8').trim(), place: site.data },
  ]);
  await server.client.reply(waiting, {
    interaction_id: (await server.client.interaction(waiting)).interaction_id,
    response: 'SQLite',
  });
  await expect.poll(async () => (await server.client.get(waiting)).status, { timeout: 30_000 }).toBe('succeeded');
  await expect
    .poll(async () => (await server.client.verify(waiting)).checks.filter(({ ok }) => !ok), { timeout: 10_000 })
    .toEqual([]);
  // The server uses it now, and one run has continued when it no longer does.
  expect(await importInto(database, site)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('in use by process') as string,
  });
  server.child.kill('SIGTERM');
  await server.ended;
  await expectImported(database, site, { copied: 0, known: 3 });
});

test('every row arrives unchanged, whatever its text; notifications too, those of deleted runs once', async () => {
  const stores = await withStores();
  const site = createSite();
  const there: Record<string, unknown>[] = [];
  const handle = {
    engine: 'codex',
    handle_type: 'session_id',
    handle_value: 'abc',
    cwd: `/w ${KEY}`,
    home: `/h ${KEY}`,
    created_at_attempt: 1,
  } as const;
  const resolution = {
    at: T0 + 700,
    response: { odd: ODD },
    actor: { kind: 'user' as const, name: ODD },
    idempotency_key: `key ${KEY}`,
    finish: false,
  };
  const turn = {
    attempt_number: 1,
    parser: { profile: 'codex_ndjson', units: 3, parsed: 2, fallbacks: 1, hit_rate: 2 / 3, warnings: { ODD_LINE: 1 } },
    completion: { result: 'completed', reason_code: 'ENGINE_SUCCESS' },
  } as const;
  const spec = {
    engine: 'codex',
    execution_mode: 'interactive',
    prompt: ODD,
    cwd: handle.cwd,
    home: handle.home,
    permission: 'full',
    runtime_options: { odd: ODD },
    labels: { [`k ${ODD}`]: ODD },
  } as const;
  const look = async (store: Store) => ({
    run: await store.loadRun(idOf(1)),
    request: await store.loadRequest(`req ${KEY}`),
    handle: await store.loadHandle(`req ${KEY}`),
    byLabel: await store.listRuns({ label: { key: `k ${ODD}`, value: ODD }, limit: 9 }),
    pending: await store.listPending({ limit: 9 }),
    first: await store.loadInteraction('int_1'),
    byKey: await store.loadInteractionByKey(idOf(1), resolution.idempotency_key),
    turns: await store.sumTurns(),
    digest: await store.recomputeDigest(idOf(1)),
    at: await store.findAtWork(handle.cwd),
    rasp: await store.readJournal(idOf(1), 'rasp', ALL),
    fcmp: await store.readJournal(idOf(1), 'fcmp', ALL),
    counted: await store.countRuns(),
    deliveries: await store.countDeliveries(),
  });
  await fill(site, async (store) => {
    let run = await create(store, 1, { run_id: idOf(1), request_id: `req ${KEY}`, spec, handle });
    run = await commit(store, run, {
      set: { status: 'waiting_user', epoch: 3 },
      ask: ask('int_1', { question: { kind: 'open_text', prompt: ODD, options: [] } }),
      turn,
      handle,
      deliveries: [delivery('dlv_1', 'chat', { odd: ODD })],
    });
    run = await commit(store, run, {
      set: { status: 'queued', cancel_requested: { at: T0, actor: null } },
      resolve: { interaction_id: 'int_1', state: 'answered', resolution },
    });
    await commit(store, run, {
      set: { status: 'waiting_user', attempt_number: 2 },
      journal: flush(3, 4, 3, T0 + 6000),
      ask: ask('int_2', { attempt_number: 2, decides: true }),
      deliveries: [delivery('dlv_2')],
    });
    await store.finishDelivery('dlv_1', { type: 'retry', at: T0 + 9, error: ODD });
    await store.finishDelivery('dlv_2', { type: 'given_up', at: T0 + 9, error: ODD });
    const gone = await create(store, 2, { run_id: idOf(2) });
    await commit(store, gone, { set: { status: 'canceled' }, deliveries: [delivery('dlv_3')] });
    expect(await store.deleteRun(idOf(2))).toBe('deleted');
    there.push(await look(store));
  });
  await expectImported(stores, site, { copied: 1, known: 0 });
  const store = await stores.store();
  expect(await look(store)).toEqual(there[0]);
  expect(there[0]).toMatchObject({
    deliveries: { pending: 2, given_up: 1 },
    at: idOf(1),
    byKey: { interaction_id: 'int_1' },
  });
  expect(await store.nextDelivery(T0 + 10_000)).toMatchObject({
    delivery_id: 'dlv_1',
    tries: 1,
    payload: { odd: ODD },
  });
  for (const id of ['dlv_1', 'dlv_3']) expect(await store.finishDelivery(id, { type: 'delivered' })).toBe(true);
  await expectImported(stores, site, { copied: 0, known: 1 });
  expect(await store.countDeliveries()).toEqual({ pending: 0, given_up: 1 });
});

test('an import that is killed is done again, and then everything is there once', async () => {
  const stores = await withStores();
  const site = createSite();
  const runs = 400;
  await fill(site, async (store) => {
    for (let number = 1; number <= runs; number += 1) await ended(store, number);
  });
  const first = start(site, ['import'], { env: { PARLEY_DATABASE_URL: stores.url } });
  const copied = async () =>
    Number((await stores.query<{ runs: string }>('SELECT count(*) AS runs FROM parley.runs'))[0]?.runs);
  await until('some were copied', async () => (await copied()) > 20);
  first.child.kill('SIGKILL');
  await first.ended;
  await until(
    'its connection is gone',
    async () =>
      (
        await stores.query(
          `SELECT FROM pg_stat_activity WHERE application_name = 'parley' AND datname = current_database()`,
        )
      ).length === 0,
  );
  const before = await copied();
  expect(before).toBeGreaterThan(20);
  expect(before).toBeLessThan(runs);
  await expectImported(stores, site, { copied: runs - before, known: before });
  const store = await stores.store();
  for (const run of await store.listRuns({ limit: runs }))
    expect(await store.recomputeDigest(run.run_id)).toBe(run.heads.digest);
  expect(
    await stores.query(
      'SELECT protocol, count(*)::int AS segments FROM parley.segments GROUP BY protocol ORDER BY protocol',
    ),
  ).toEqual([
    { protocol: 'fcmp', segments: 2 * runs },
    { protocol: 'rasp', segments: 2 * runs },
  ]);
});

test('a run that exists with other content is named and kept, a changed one is skipped, others copied', async () => {
  const stores = await withStores();
  const site = createSite();
  const store = await stores.store();
  await fill(site, async (source) => {
    for (const number of [1, 2, 3, 4]) await ended(source, number);
    // Compressed; the first is damaged below.
    for (const number of [5, 6])
      await ended(source, number, { journal: flush(1, 2, 1, T0 + number) }, flush(3, 2000, 3, T0 + 9000));
  });
  await ended(store, 1, { request_digest: 'digest-2' });
  await ended(store, 9, { request_id: 'req_0002' });
  const db = await openDatabase(join(site.data, 'parley.db'));
  db.exec(
    `UPDATE segments
     SET body = CAST(replace(body, '"seq":3', '"seq":4') AS BLOB)
     WHERE run_id = '${idOf(3)}' AND protocol = 'rasp'`,
  );
  expect(
    db
      .prepare(
        `UPDATE segments SET body = substr(body, 1, length(body) - 9) WHERE run_id = '${idOf(5)}' AND packed > 0`,
      )
      .run().changes,
  ).toBe(2);
  db.close();
  const before = await stores.query('SELECT * FROM parley.runs ORDER BY run_id');
  const { code, stdout, stderr } = await importInto(stores, site, '--json');
  expect(code).toBe(1);
  expect(expectLines(stdout)).toMatchObject([{ copied: 2, known: 0, refused: [idOf(1), idOf(2), idOf(3), idOf(5)] }]);
  expect(expectLines(stderr)).toMatchObject([
    {
      error: {
        code: 'IMPORT_INCOMPLETE',
        message: expect.stringMatching(
          `another content, .*${idOf(1)}, ${idOf(2)}; .*parley verify .*${idOf(3)}, ${idOf(5)}`,
        ) as string,
      },
    },
  ]);
  expect(
    await stores.query(`SELECT * FROM parley.runs WHERE run_id NOT IN ('${idOf(4)}', '${idOf(6)}') ORDER BY run_id`),
  ).toEqual(before);
  expect(await store.readJournal(idOf(6), 'rasp', ALL)).toEqual(
    Buffer.concat([lines(1, 2, T0 + 6).bytes, lines(3, 2000, T0 + 9000).bytes])
      .toString()
      .split('\n')
      .slice(0, -1),
  );
});

test('a data directory of an older version is imported and stays as old as it is', async () => {
  const stores = await withStores();
  const site = createSite();
  await fill(site, async (source) => {
    const run = await create(source, 1, { run_id: idOf(1) });
    const asked = await commit(source, run, { set: { status: 'waiting_user' }, ask: ask('int_1') });
    await commit(source, asked, {
      set: { status: 'canceled' },
      resolve: {
        interaction_id: 'int_1',
        state: 'canceled',
        resolution: { at: T0 + 250, response: null, actor: null, idempotency_key: null, finish: false },
      },
    });
  });
  const db = await openDatabase(join(site.data, 'parley.db'));
  const triggers = db.prepare(`SELECT name FROM sqlite_master WHERE type = 'trigger' AND name NOT LIKE 'audit%'`).all();
  for (const { name } of triggers as { name: string }[]) db.exec(`DROP TRIGGER ${name}`);
  db.exec(`DROP INDEX runs_by_home; DROP INDEX runs_at_work; DROP INDEX runs_by_cwd; DROP INDEX runs_ended;
    DROP INDEX runs_at_work_by_home;
    DROP INDEX run_labels_by_run; DROP INDEX runs_by_engine; DROP INDEX runs_by_status_and_engine;
    DROP INDEX pending_by_engine; DROP INDEX pending_by_due; ALTER TABLE interactions DROP COLUMN engine;
    ALTER TABLE runs DROP COLUMN crashes; ALTER TABLE runs DROP COLUMN at_work;
    DROP INDEX runs_by_tail; DROP TABLE totals;
    DROP TABLE event_groups; ALTER TABLE segments DROP COLUMN flushes;
    ALTER TABLE runs DROP COLUMN cwd; ALTER TABLE runs DROP COLUMN home; ALTER TABLE runs DROP COLUMN continues;
    CREATE INDEX runs_by_home ON runs (json_extract(spec_json, '$.home'))`);
  db.exec(
    'ALTER TABLE segments DROP COLUMN packed; ALTER TABLE runs DROP COLUMN waited_ms; DROP TABLE deliveries; DROP ' +
      'TABLE sessions; DROP TABLE sign_in_codes; DROP TABLE token_uses; DROP TABLE audit; DROP TABLE audit_head; ' +
      'PRAGMA user_version = 2',
  );
  db.close();
  await expectImported(stores, site, { copied: 1, known: 0 });
  expect(await (await stores.store()).loadRun(idOf(1))).toMatchObject({ waited_ms: 250 });
  const after = await openDatabase(join(site.data, 'parley.db'));
  expect(after.prepare('PRAGMA user_version').get()).toEqual({ user_version: 2 });
  expect(after.prepare(`SELECT name FROM pragma_table_info('runs') WHERE name = 'waited_ms'`).all()).toEqual([]);
  after.close();
});

test('counts of deleted runs are imported once, and later only additions', async () => {
  const stores = await withStores();
  const site = createSite();
  const turn = {
    attempt_number: 1,
    parser: { profile: 'codex_ndjson', units: 3, parsed: 2, fallbacks: 1, hit_rate: 2 / 3, warnings: { ODD_LINE: 1 } },
    completion: { result: 'unknown', reason_code: 'NO_TURN_COMPLETED' },
  } as const;
  const deleted = async (source: Store, number: number) => {
    await commit(source, await create(source, number, { run_id: idOf(number) }), { set: { status: 'failed' }, turn });
    expect(await source.deleteRun(idOf(number))).toBe('deleted');
  };
  await fill(site, (source) => deleted(source, 1));
  const sum = async () => (await stores.store()).sumTurns();
  for (let count = 0; count < 2; count += 1) {
    await expectImported(stores, site, { copied: 0, known: 0 });
    expect(await sum()).toMatchObject([
      { turns: 1, units: 3, warnings: { ODD_LINE: 1 }, unknown: { NO_TURN_COMPLETED: 1 } },
    ]);
  }
  await fill(site, (source) => deleted(source, 2));
  await expectImported(stores, site, { copied: 0, known: 0 });
  expect(await sum()).toMatchObject([
    { turns: 2, units: 6, warnings: { ODD_LINE: 2 }, unknown: { NO_TURN_COMPLETED: 2 } },
  ]);
});

test('data that cannot be imported is refused with the reason, and nothing is changed', async () => {
  const database = await ownDatabase();
  const empty = await ownDatabase({ empty: true });
  const site = createSite();
  const refused = async (into: Pick<TestDatabase, 'url'>, code: number, text: string) =>
    expect(await importInto(into, site)).toMatchObject({
      code,
      stdout: '',
      stderr: expect.stringContaining(text) as string,
    });
  await refused(database, 2, 'There are no runs in');
  await fill(site, async (store) => {
    await ended(store, 1);
  });
  await refused({ url: '' }, 2, 'PARLEY_DATABASE_URL names no database');
  await refused(empty, 1, 'Run "parley migrate"');
  await refused({ url: 'postgresql://parley:geheim@127.0.0.1:1/none' }, 1, 'none at 127.0.0.1:1 cannot be reached');
  const release = await lockDataDir(site.data, { pid: process.pid });
  await refused(database, 1, `in use by process ${process.pid}`);
  release();
  await fill(site, async (store) => {
    await create(store, 2, { run_id: idOf(2) });
    await commit(store, await create(store, 3, { run_id: idOf(3) }), { set: { status: 'running' } });
  });
  await refused(database, 1, `Runs in ${site.data} have not ended: ${idOf(2)}, ${idOf(3)}`);
  for (const name of ['parley.db-wal', 'parley.db-shm']) rmSync(join(site.data, name), { force: true });
  writeFileSync(join(site.data, 'parley.db'), 'this is no database at all, whatever its name says');
  await refused(database, 1, 'cannot be used');
  expect(await database.query('SELECT FROM parley.runs')).toEqual([]);
});

test('files that all hosts share belong to no site', async () => {
  const stores = await withStores();
  const site = createSite();
  await fill(site, async (store) => {
    await ended(store, 1);
  });
  writeFileSync(join(site.data, 'config.json'), JSON.stringify({ cluster: { files: 'shared' } }));
  await expectImported(stores, site, { copied: 1, known: 0 });
  expect(await stores.query('SELECT site, place FROM parley.runs')).toEqual([{ site: null, place: site.data }]);
});

test('on a terminal it shows its progress in a line that is removed at the end', async () => {
  const { url } = await withStores();
  const site = createSite();
  await fill(site, async (store) => {
    for (const number of [1, 2]) await ended(store, number);
  });
  const pty = onTerminal(site, ['import'], { env: { PARLEY_DATABASE_URL: url } });
  expect(await pty.exit).toBe(0);
  expect(pty.output()).toMatch(
    /\r\u001b\[2K1 of 2 runs\r\u001b\[2K2 of 2 runs\r\u001b\[2K2 runs copied into parley_test_\w+ at \S+\r\n$/,
  );
});

test('named tokens come along once: one that was taken back does not come back', async () => {
  const database = await ownDatabase();
  const site = createSite();
  await fill(site, async (store) => void (await ended(store, 1)));
  for (const name of ['ann', 'bob'])
    expect((await parley(site, ['token', 'add', name, '--role', 'viewer'])).code).toBe(0);
  await expectImported(database, site, { copied: 1, known: 0 });
  const tokens = (...args: string[]) =>
    parley(site, ['token', ...args], { env: { PARLEY_DATABASE_URL: database.url } });
  expect((await tokens('ls')).stdout).toMatch(/ann[^]*bob/);
  expect((await tokens('rm', 'bob')).code).toBe(0);
  await expectImported(database, site, { copied: 0, known: 1 });
  expect((await tokens('ls')).stdout).not.toContain('bob');
  // Another of the same name succeeds.
  expect((await tokens('add', 'bob', '--role', 'replier')).code).toBe(0);
  expect((await tokens('ls')).stdout).toMatch(/bob\s+replier/);
});
