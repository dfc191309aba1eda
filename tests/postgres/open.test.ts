// Opening a database: refusals, concurrent migrations, and text that PostgreSQL rejects.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { Database } from '../../src/store/postgres/connection/database.js';
import { migrate } from '../../src/store/postgres/connection/migrate.js';
import { MIGRATIONS } from '../../src/store/postgres/connection/migrations.js';
import { migratePostgres, openPostgres } from '../../src/store/postgres/connection/open-postgres.js';
import { fromText, toText } from '../../src/store/postgres/connection/text.js';
import { T0, ask, delivery, newRun } from '../store/conformance.js';
import { commit, create, withStores } from '../support/postgres-stores.js';
import { describeLoss, readPlace } from '../../src/store/postgres/connection/lost-connection.js';

test('a database that was never migrated is refused and not touched, and is usable afterwards', async () => {
  const stores = await withStores({ empty: true });
  await expect(stores.store()).rejects.toMatchObject({
    code: 'DATABASE_NOT_MIGRATED',
    message: expect.stringContaining('parley migrate') as string,
  });
  expect(await stores.query(`SELECT FROM pg_namespace WHERE nspname = 'parley'`)).toEqual([]);
  await migratePostgres(stores.url);
  await migratePostgres(stores.url);
  await create(await stores.store());
});

test('an older database is refused unless it is to be migrated, a later one in any case', async () => {
  const stores = await withStores({ empty: true });
  await create(await stores.store({ migrate: true }));
  await stores.query(`UPDATE parley.meta SET value = '0' WHERE key = 'version'`);
  await expect(stores.store()).rejects.toMatchObject({ code: 'DATABASE_NOT_MIGRATED' });
  await stores.query(`UPDATE parley.meta SET value = '9999' WHERE key = 'version'`);
  for (const how of [{}, { migrate: true }])
    await expect(stores.store(how)).rejects.toMatchObject({ code: 'DATABASE_TOO_NEW' });
  await expect(migratePostgres(stores.url)).rejects.toMatchObject({ code: 'DATABASE_TOO_NEW' });
});

test('a migration that fails half way leaves the database as it was', async () => {
  const stores = await withStores();
  const db = new Database(stores.url);
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const later = newest + 1;
  const broken = { version: later, name: 'broken', sql: 'CREATE TABLE parley.half (x int); SELECT 1 / 0' };
  await expect(migrate(db, [...MIGRATIONS, broken])).rejects.toThrow('division by zero');
  expect(
    await stores.query(`SELECT value, to_regclass('parley.half') AS half FROM parley.meta WHERE key = 'version'`),
  ).toEqual([{ value: String(newest), half: null }]);
  await migrate(db, [...MIGRATIONS, { ...broken, sql: 'CREATE TABLE parley.half (x int)' }]);
  expect(await stores.query(`SELECT value FROM parley.meta WHERE key = 'version'`)).toEqual([{ value: String(later) }]);
  await db.close();
});

test('a migration is refused while a host has a lease, and leaves the database as it was', async () => {
  const stores = await withStores();
  const newest = MIGRATIONS.at(-1)?.version ?? 0;
  const { lease } = await stores.host('host_a');
  const db = new Database(stores.url);
  onTestFinished(() => db.close());
  const next = [...MIGRATIONS, { version: newest + 1, name: 'next', sql: 'CREATE TABLE parley.next (x int)' }];
  await expect(migrate(db, next)).rejects.toMatchObject({
    code: 'HOSTS_DIFFER',
    message: expect.stringContaining('name of host_a') as string,
  });
  expect(await stores.query(`SELECT value FROM parley.meta WHERE key = 'version'`)).toEqual([
    { value: String(newest) },
  ]);
  // A database that is up to date stays usable by its hosts.
  await migrate(db);
  expect(await lease.renew()).toBe(true);
  await lease.release();
  await migrate(db, next);
  expect(await stores.query(`SELECT value FROM parley.meta WHERE key = 'version'`)).toEqual([
    { value: String(newest + 1) },
  ]);
});

test('a host of the version before cannot join after the migration, even if it was started earlier', async () => {
  const stores = await withStores();
  const join = `INSERT INTO parley.hosts (host_id, name, started_at, lease_until, url, info_json, site, place)
    VALUES ('old', 'old', clock_timestamp(), clock_timestamp() + interval '1 hour', NULL, '{}', NULL, NULL)`;
  await expect(stores.query(join)).rejects.toThrow('null value in column');
  // The notifications of generation 2.
  const second = join.replace('place)', 'place, generation)').replace('NULL, NULL)', 'NULL, NULL, 2)');
  await expect(stores.query(second)).rejects.toThrow('null value in column "token_sha256"');
  const third = second
    .replace('generation)', 'generation, token_sha256, public_key)')
    .replace('NULL, NULL, 2)', `NULL, NULL, 3, '', '')`);
  for (const generation of [third, third.replace(`3, '', '')`, `4, '', '')`)])
    await expect(stores.query(generation)).rejects.toThrow('violates check constraint "hosts_read_totals"');
});

test('four processes that migrate at once all succeed', async () => {
  const stores = await withStores({ empty: true });
  const moduleUrl = new URL('../../dist/store/postgres/connection/open-postgres.js', import.meta.url).href;
  const script = `
    import { migratePostgres } from ${JSON.stringify(moduleUrl)};
    process.stdout.write('ready ');
    await new Promise((resolve) => process.stdin.once('data', resolve));
    await migratePostgres(${JSON.stringify(stores.url)});
    process.stdout.write('migrated');
    process.stdin.destroy();`;
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const said = children.map((child) => text(child.stdout));
  await Promise.all(children.map((child) => once(child.stdout, 'readable')));
  for (const child of children) child.stdin.write('go');
  expect(await Promise.all(said)).toEqual(Array.from({ length: 4 }, () => 'ready migrated'));
  await create(await stores.store());
});

test('errors for an unreachable database, a wrong password or a wrong address do not show the password', async () => {
  const stores = await withStores();
  const proxy = await stores.proxy();
  proxy.shut();
  const wrong = new URL(stores.url);
  wrong.password = 'not-the-password';
  const missing = new URL(stores.url);
  missing.pathname = '/no_such_database';
  for (const url of [proxy.url, wrong.href, missing.href]) {
    const error = await openPostgres(url, { host: null }).then(
      () => null,
      (reason: unknown) => reason as Error,
    );
    expect(error).toMatchObject({ code: 'STORE_UNAVAILABLE' });
    expect(`${error?.message} ${error?.stack}`).not.toContain(new URL(url).password);
  }
  for (const url of ['mysql://u:secret@h/d', 'secret', '', 'postgresql://u:secret%@h/d']) {
    await expect(openPostgres(url, { host: null })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.not.stringContaining('secret') as string,
    });
  }
});

test('the type parsers of others are not changed', async () => {
  const stores = await withStores();
  const store = await stores.store();
  expect((await create(store)).created_at).toBe(T0 + 1);
  expect(await store.loadRun('run_0001')).toMatchObject({ created_at: T0 + 1 });
  expect(await stores.query('SELECT 1::bigint AS big')).toEqual([{ big: '1' }]);
});

test('texts with NUL, lone surrogates and backslashes differ from texts that look like their escapes', async () => {
  for (const odd of ['a\0b', 'a\\u0000b', 'a\\\\u0000b', '\ud800', '\udc00\ud800', '\ufffd', '😀', '\\', ''])
    expect(fromText(toText(odd))).toBe(odd);
  const stores = await withStores();
  const store = await stores.store();
  const [nul, escape] = ['a\0b', 'a\\u0000b'];
  const spec = { ...newRun(1).spec, cwd: nul, home: nul, labels: { [nul]: nul } };
  const handle = {
    engine: 'codex',
    handle_type: 'session_id',
    handle_value: nul,
    cwd: nul,
    home: nul,
    created_at_attempt: 1,
  } as const;
  const run = await create(store, 1, { spec, handle, request_id: nul });
  expect(await store.loadRun(run.run_id)).toEqual(run);
  expect([(await store.loadRequest(nul))?.run, await store.loadRequest(escape)]).toEqual([run, null]);
  expect([await store.loadHandle(nul), await store.loadHandle(escape)]).toEqual([handle, null]);
  expect([await store.findAtWork(nul), await store.findAtWork(escape)]).toEqual([run.run_id, null]);
  const labelled = async (key: string, value: string) =>
    (await store.listRuns({ label: { key, value }, limit: 9 })).length;
  expect([await labelled(nul, nul), await labelled(nul, escape), await labelled(escape, nul)]).toEqual([1, 0, 0]);
  expect(await store.createRun(newRun(2, { handle }))).toMatchObject({ reason: 'session_in_use' });
  const waiting = await commit(store, run, {
    set: { status: 'waiting_user' },
    ask: ask('int_1'),
    deliveries: [delivery('dlv_1', nul)],
  });
  const resolution = { at: T0, response: nul, actor: null, idempotency_key: nul, finish: false };
  await commit(store, waiting, {
    set: { status: 'succeeded' },
    resolve: { interaction_id: 'int_1', state: 'answered', resolution },
  });
  expect([
    (await store.loadInteractionByKey(run.run_id, nul))?.resolution,
    await store.loadInteractionByKey(run.run_id, escape),
  ]).toEqual([resolution, null]);
  expect([await store.nextDelivery(T0 * 2, [nul]), (await store.nextDelivery(T0 * 2, [escape]))?.hook]).toEqual([
    null,
    nul,
  ]);
  await store.finishDelivery('dlv_1', { type: 'retry', at: T0, error: nul });
  expect((await store.nextDelivery(T0 * 2))?.error).toBe(nul);
  expect([
    await store.loadRun(nul),
    await store.loadInteraction(nul),
    await store.readLines(nul, 'rasp', 0, 10),
    await store.deleteRun(nul),
  ]).toEqual([null, null, null, 'unknown_run']);
});

test('labels and folders may be longer than an index of PostgreSQL takes', async () => {
  const stores = await withStores();
  const store = await stores.store();
  // Well compressible data would fit anyway.
  const long = Array.from({ length: 4000 }, (_, index) =>
    String.fromCodePoint(0x4e00 + ((index * 7919) % 20_000)),
  ).join('');
  await create(store, 1, { spec: { ...newRun(1).spec, cwd: `/${long}`, home: `/${long}`, labels: { [long]: long } } });
  expect(await store.findAtWork(`/${long}`)).toBe('run_0001');
  expect(await store.listRuns({ label: { key: long, value: long }, limit: 9 })).toHaveLength(1);
});

test.each([
  [
    new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'),
    '',
    'it wants a password, and there is none in the address',
  ],
  [new Error('role "x" does not exist for secret'), 'secret', 'role "x" does not exist for …'],
  // Hiding the end of a very short one would reveal it.
  [new Error('role "nobody" does not exist'), 'x', 'role "nobody" does not exist'],
])('%s is reported without the password', (error, password, told) => {
  expect(describeLoss({ ...readPlace('postgresql://h/d'), password }, error).message).toBe(
    `The database d at h cannot be reached: ${told}`,
  );
});
