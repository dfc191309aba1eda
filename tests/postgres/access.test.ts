// Sessions, codes, tokens and the administrative journal in PostgreSQL, shared by several hosts.
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { verifyAudit } from '../../src/store/audit.js';
import { PostgresAccess } from '../../src/store/postgres/access.js';
import { openPostgres } from '../../src/store/postgres/open-postgres.js';
import { describeAccess, type OpenAccess } from '../store/access-conformance.js';
import { parley as run } from '../support/command.js';
import { withHosts, type Hosts } from '../support/hosts.js';
import { withDatabase } from '../support/postgres.js';
import { withStores } from '../support/postgres-stores.js';

async function open(): Promise<OpenAccess> {
  const database = await withDatabase();
  const [one, two] = [
    await openPostgres(database.url, { host: null }),
    await openPostgres(database.url, { host: null }),
  ];
  return {
    store: one,
    access: new PostgresAccess(one),
    beside: new PostgresAccess(two),
    audit: 'parley.audit',
    tamper: async (sql) => {
      await database.query('DROP TRIGGER IF EXISTS audit_keeps_rows ON parley.audit');
      await database.query(sql);
    },
    close: async () => {
      await one.close();
      await two.close();
      await database.drop();
    },
  };
}

describeAccess('access in PostgreSQL', open);

test('rows of the journal can be neither changed nor deleted by a statement', async () => {
  const stores = await withStores();
  const access = new PostgresAccess(await stores.store());
  await access.appendAudit({ at: 1, actor: null, address: null, type: 'sign_out', body: {} });
  for (const sql of ['DELETE FROM parley.audit', `UPDATE parley.audit SET type = 'x'`, 'TRUNCATE parley.audit'])
    await expect(stores.query(sql)).rejects.toThrow(/administrative journal are never/);
  expect(await verifyAudit(access)).toMatchObject({ ok: true, rows: 1 });
});

const call = ({ site, database }: Hosts, ...args: string[]) =>
  run({ ...site, env: { ...site.env, PARLEY_DATABASE_URL: database.url } }, args);
const statusOf = async (url: string, headers: Record<string, string>): Promise<number> =>
  (await fetch(`${url}/v1/me`, { headers })).status;
const signIn = async (url: string, token: string): Promise<string> => {
  const answer = await fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ token }),
  });
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
};

test('the operator token is rotated on all hosts without a restart, and its sessions end', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const cookie = await signIn(a.url, a.token);
  for (const { url } of [a, b])
    expect([await statusOf(url, { cookie }), await statusOf(url, { authorization: `Bearer ${a.token}` })]).toEqual([
      200, 200,
    ]);
  const rotated = await call(hosts, 'token', 'rotate', '--operator');
  expect(rotated).toMatchObject({ code: 0, stderr: '' });
  const fresh = rotated.stdout.trim();
  for (const { url } of [a, b]) {
    await expect.poll(() => statusOf(url, { authorization: `Bearer ${a.token}` })).toBe(401);
    await expect.poll(() => statusOf(url, { cookie })).toBe(401);
    expect(await statusOf(url, { authorization: `Bearer ${fresh}` })).toBe(200);
  }
  // Commands beside them find the new one by themselves.
  expect((await call(hosts, 'link')).stdout).toMatch(/#code=prc_/);
});

test('a rotated or revoked token and its sessions stop on all hosts; their journal is one chain', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const old = (
    await call(hosts, 'token', 'add', 'phone', '--person', 'anna', '--role', 'viewer', '--expires', '90d')
  ).stdout.trim();
  await expect.poll(() => statusOf(b.url, { authorization: `Bearer ${old}` })).toBe(200);
  const cookie = await signIn(a.url, old);
  expect(await statusOf(b.url, { cookie })).toBe(200);
  const fresh = (await call(hosts, 'token', 'rotate', 'phone')).stdout.trim();
  for (const { url } of [a, b]) {
    await expect.poll(() => statusOf(url, { authorization: `Bearer ${old}` })).toBe(401);
    await expect.poll(() => statusOf(url, { cookie })).toBe(401);
    await expect.poll(() => statusOf(url, { authorization: `Bearer ${fresh}` })).toBe(200);
  }
  expect((await call(hosts, 'token', 'ls')).stdout).toMatch(/phone +anna +viewer/);
  const second = await signIn(b.url, fresh);
  const sessions = await createClient({ url: a.url, token: a.token }).sessions();
  expect(sessions.sessions).toMatchObject([{ person: 'anna', token: 'phone' }]);
  expect((await call(hosts, 'token', 'sessions', '--end', sessions.sessions[0]?.session_id ?? '')).code).toBe(0);
  for (const { url } of [a, b]) await expect.poll(() => statusOf(url, { cookie: second })).toBe(401);
  expect((await call(hosts, 'token', 'rm', 'phone')).code).toBe(0);
  for (const { url } of [a, b]) await expect.poll(() => statusOf(url, { authorization: `Bearer ${fresh}` })).toBe(401);
  const verified = await call(hosts, 'audit', '--verify', '--json');
  expect(JSON.parse(verified.stdout)).toMatchObject({ ok: true, problem: null });
  const types = (await call(hosts, 'audit', '--all', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { entry: { type: string } }).entry.type);
  expect(types).toEqual(
    expect.arrayContaining([
      'settings.changed',
      'token.added',
      'sign_in',
      'token.rotated',
      'session.ended',
      'token.removed',
    ]),
  );
});

test('tokens are revoked on all hosts even if the journal cannot be written, which is reported by the exit code', async () => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const tokens = new Map<string, string>();
  for (const name of ['anna', 'bert']) tokens.set(name, (await call(hosts, 'token', 'add', name)).stdout.trim());
  const { stdout: operator } = await call(hosts, 'token', 'rotate', '--operator');
  const statusWith = (token: string) => statusOf(a.url, { authorization: `Bearer ${token}` });
  await hosts.database.query('ALTER TABLE parley.audit RENAME TO other');
  const said = { code: 1, stderr: expect.stringContaining('could not be recorded in the administrative journal') as string };
  expect(await call(hosts, 'token', 'rm', 'anna')).toMatchObject(said);
  const rotated = await call(hosts, 'token', 'rotate', 'bert');
  expect(rotated).toMatchObject(said);
  expect(await call(hosts, 'token', 'rotate', '--operator')).toMatchObject(said);
  for (const old of [...tokens.values(), operator.trim()]) await expect.poll(() => statusWith(old)).toBe(401);
  expect(await statusWith(rotated.stdout.trim())).toBe(200);
});
