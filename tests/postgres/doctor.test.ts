// parley doctor with PARLEY_DATABASE_URL: its report about the database, without secrets.
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/kernel/json.js';
import { registerHost } from '../../src/store/postgres/hosts/host-lease.js';
import { createSite, expectLines, parley, type Site } from '../support/command.js';
import { commit, create, withStores } from '../support/postgres-stores.js';
import { ask } from '../store/conformance.js';

interface Finding {
  readonly name: string;
  readonly level: string;
  readonly text: string;
}

async function doctor(
  site: Site,
  url: string,
): Promise<{ code: number; said: string; about: (name: string) => Finding[] }> {
  const { code, stdout, stderr } = await parley(site, ['doctor', '--json'], { env: { PARLEY_DATABASE_URL: url } });
  const findings = expectLines(stdout)[0]?.['findings'] as Finding[];
  return { code, said: stdout + stderr, about: (name) => findings.filter((each) => each.name === name) };
}

test('the database, its version, living hosts and waiting runs are reported', async () => {
  const stores = await withStores();
  const site = createSite();
  const store = await stores.store();
  expect((await doctor(site, stores.url)).about('hosts')).toMatchObject([
    { level: 'note', text: expect.stringContaining('none is alive') as string },
  ]);
  await registerHost(store.database, {
    host_id: 'h1',
    name: 'one',
    url: 'http://anna:geheim@one.example:7717',
    ttlMs: 600_000,
  });
  await registerHost(store.database, { host_id: 'h2', name: 'two', url: null, ttlMs: 1 });
  await commit(store, await create(store), { set: { status: 'waiting_user' }, ask: ask('int_1') });
  const { code, said, about } = await doctor(site, stores.url);
  expect(code).toBe(0);
  expect(about('database')).toMatchObject([
    {
      level: 'ok',
      text: expect.stringMatching(
        new RegExp(
          '^parley_test_\\w+ at \\S+ \\(PostgreSQL \\d+\\S*.*, tables of version \\d+\\), ' +
            '1 waiting for you, 1 of them overdue$',
        ),
      ) as string,
    },
  ]);
  expect(about('host')).toMatchObject([
    { level: 'ok', text: expect.stringMatching(/^one since \S+Z, http:\/\/one\.example:7717$/) as string },
  ]);
  expect(said).not.toContain('geheim');
});

test('an unreachable, unprepared or invalid database is reported without its password', async () => {
  const { url } = await withStores({ empty: true });
  const site = createSite();
  for (const [address, text] of [
    ['postgresql://parley:geheim@127.0.0.1:1/none', 'none at 127.0.0.1:1 cannot be reached'],
    [url, 'Run "parley migrate"'],
    ['parley:geheim@nowhere', 'looks like postgresql://'],
    ['postgresql://parley:geheim%@127.0.0.1:1/none', 'as %25'],
  ] as const) {
    const { code, said, about } = await doctor(site, address);
    expect({ code, findings: about('database') }).toMatchObject({
      code: 1,
      findings: [{ level: 'missing', text: expect.stringContaining(text) as string }],
    });
    expect(said).not.toContain('geheim');
  }
});

test('runs in the data directory itself are not mistaken for those of the database', async () => {
  const { url } = await withStores();
  const site = createSite();
  expect((await parley(site, ['run', 'rehearsal', '[[ask Which?|A|B]]', '-i', '--scratch'])).code).toBe(3);
  expect((await doctor(site, url)).about('data')).toMatchObject([
    { level: 'note', text: expect.stringContaining('parley import copies them') as string },
  ]);
});

test('living hosts with differing settings are reported by name', async () => {
  const stores = await withStores();
  const site = createSite();
  const { database } = await stores.store();
  const register = (name: string, info: JsonObject) =>
    registerHost(database, { host_id: `host_${name}`, name, url: null, ttlMs: 600_000, info });
  await register('a', { version: '1.0.0', files: 'host', lease_sec: 15 });
  // A host without information about itself has no differences.
  await register('b', {});
  expect((await doctor(site, stores.url)).about('hosts')).toEqual([]);
  await register('c', { version: '1.0.0', files: 'shared', lease_sec: 15 });
  await register('d', { version: '1.0.1', files: 'shared', lease_sec: 5 });
  const { code, about } = await doctor(site, stores.url);
  expect(code).toBe(0);
  expect(about('hosts')).toEqual([
    {
      name: 'hosts',
      level: 'note',
      text: 'the running hosts differ in cluster.files: host (a), shared (c, d); set the same in config.json of each',
    },
    {
      name: 'hosts',
      level: 'note',
      text: 'the running hosts differ in cluster.lease_sec: 15 (a, c), 5 (d); set the same in config.json of each',
    },
    {
      name: 'hosts',
      level: 'note',
      text: 'the running hosts differ in their version of Parley: 1.0.0 (a, c), 1.0.1 (d); update them to the same',
    },
  ]);
});
