// Sessions, codes, tokens and the administrative journal in PostgreSQL, shared by several hosts.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { rotateOperatorToken } from '../../src/service/access/operator-token.js';
import { hashToken } from '../../src/service/access/tokens.js';
import { verifyAudit } from '../../src/store/audit.js';
import { PostgresAccess } from '../../src/store/postgres/access/access.js';
import { openPostgres } from '../../src/store/postgres/connection/open-postgres.js';
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

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
// A command on the data directory of a host, or of another user.
const callOn = ({ site, database }: Hosts, name: string, ...args: string[]) =>
  run(
    { ...site, env: { ...site.env, PARLEY_DATA: join(site.root, `data-${name}`), PARLEY_DATABASE_URL: database.url } },
    args,
  );
const operatorRows = ({ database }: Hosts) =>
  database.query<{ sha256: string; directory: string }>(
    'SELECT sha256, directory FROM parley.operator_tokens ORDER BY created_at',
  );

test('the operator token of each directory is valid on all hosts; rotating one ends it and its sessions', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  expect(a.token).not.toBe(b.token);
  const [cookie, other] = [await signIn(a.url, a.token), await signIn(a.url, b.token)];
  for (const { url } of [a, b])
    for (const headers of [{ cookie }, { cookie: other }, bearer(a.token), bearer(b.token)])
      expect(await statusOf(url, headers)).toBe(200);
  const before = await operatorRows(hosts);
  const rotated = await callOn(hosts, 'a', 'token', 'rotate', '--operator');
  expect(rotated).toMatchObject({ code: 0, stderr: '' });
  const fresh = rotated.stdout.trim();
  expect(readFileSync(join(hosts.site.root, 'data-a', 'token'), 'utf8')).toBe(`${fresh}\n`);
  for (const { url } of [a, b]) {
    await expect.poll(() => statusOf(url, bearer(a.token))).toBe(401);
    await expect.poll(() => statusOf(url, { cookie })).toBe(401);
    for (const headers of [{ cookie: other }, bearer(b.token), bearer(fresh)])
      expect(await statusOf(url, headers)).toBe(200);
  }
  // One row for each directory, as before.
  const after = await operatorRows(hosts);
  expect(after.map(({ directory }) => directory).toSorted()).toEqual(
    before.map(({ directory }) => directory).toSorted(),
  );
  expect(after.map(({ sha256 }) => sha256).toSorted()).toEqual([fresh, b.token].map(hashToken).toSorted());
  expect((await callOn(hosts, 'a', 'link')).stdout).toMatch(/#code=prc_/);
  const entries = (await callOn(hosts, 'a', 'audit', '--all', '--json')).stdout
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { entry: { type: string; body: object } }).entry);
  expect(entries.filter(({ type }) => type === 'token.rotated')).toMatchObject([{ body: { operator: true } }]);
});

test('a command registers the token of its data directory once, and a link signs in as its operator', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  for (const _ of [1, 2, 3]) expect((await callOn(hosts, 'of-ann', 'link')).stdout).toMatch(/#code=prc_/);
  expect(await operatorRows(hosts)).toHaveLength(3);
  const token = readFileSync(join(hosts.site.root, 'data-of-ann', 'token'), 'utf8').trim();
  const [, code = ''] = /#code=(\S+)/.exec((await callOn(hosts, 'of-ann', 'link')).stdout) ?? [];
  const signedIn = await fetch(`${b.url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: b.url, 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  const cookie = signedIn.headers.get('set-cookie')?.split(';')[0] ?? '';
  for (const { url } of [a, b])
    for (const headers of [{ cookie }, bearer(token)]) expect(await statusOf(url, headers)).toBe(200);
  // The link belongs to the token of the command, and ends with it.
  await callOn(hosts, 'of-ann', 'token', 'rotate', '--operator');
  for (const { url } of [a, b]) {
    for (const headers of [{ cookie }, bearer(token)]) await expect.poll(() => statusOf(url, headers)).toBe(401);
    for (const server of [a, b]) expect(await statusOf(url, bearer(server.token))).toBe(200);
  }
});

test('hosts with shared files share one operator token, also when they start at once', async () => {
  const hosts = await withHosts({ files: 'shared' });
  const servers = await Promise.all(['a', 'b', 'c'].map((name) => hosts.start(name, { token: null })));
  const token = readFileSync(join(hosts.site.data, 'token'), 'utf8').trim();
  expect((await operatorRows(hosts)).map(({ sha256 }) => sha256)).toEqual([hashToken(token)]);
  for (const { url } of servers) expect(await statusOf(url, bearer(token))).toBe(200);
});

test('rows of directories unseen for 90 days or beyond the limit are deleted; a server keeps its own row', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a', { token: null });
  const put = (count: number, from: string, age: string) =>
    hosts.database.query(
      `INSERT INTO parley.operator_tokens
       SELECT 'hash_${from}_' || n, 'site_${from}_' || n, 'u', 'h',
         clock_timestamp() - interval '${age}', clock_timestamp() - interval '${age}'
       FROM generate_series(1, ${count}) AS n`,
    );
  await put(5, 'old', '91 days');
  await put(1200, 'many', '2 hours');
  expect((await callOn(hosts, 'new', 'link')).code).toBe(0);
  const rows = await operatorRows(hosts);
  expect(rows).toHaveLength(1000);
  expect(rows.filter(({ sha256 }) => sha256.startsWith('hash_old'))).toEqual([]);
  expect(await statusOf(a.url, bearer(a.token))).toBe(200);
  // A server whose row was deleted, or is a day old, writes it again.
  for (const sql of [
    `DELETE FROM parley.operator_tokens WHERE sha256 = '${hashToken(a.token)}'`,
    `UPDATE parley.operator_tokens
     SET registered_at = clock_timestamp() - interval '2 days'
     WHERE sha256 = '${hashToken(a.token)}'`,
  ]) {
    await hosts.database.query(sql);
    const renewed = () =>
      hosts.database.query(
        `SELECT
         FROM parley.operator_tokens
         WHERE sha256 = '${hashToken(a.token)}' AND registered_at > clock_timestamp() - interval '1 hour'`,
      );
    await expect.poll(async () => (await renewed()).length, { timeout: 10_000 }).toBe(1);
  }
});

test('a directory whose token file was replaced by hand has only the new token after the next start', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a', { token: null });
  const b = await hosts.start('b', { token: null });
  a.child.kill('SIGTERM');
  await a.ended;
  rmSync(join(hosts.site.root, 'data-a', 'token'));
  const again = await hosts.start('a', { token: null });
  expect(again.token).not.toBe(a.token);
  for (const { url } of [again, b]) {
    await expect.poll(() => statusOf(url, bearer(a.token))).toBe(401);
    expect(await statusOf(url, bearer(again.token))).toBe(200);
  }
});

test('a rotation that was cut off after the file was replaced is completed by the next command', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const cookie = await signIn(b.url, a.token);
  const fresh = rotateOperatorToken(join(hosts.site.root, 'data-a'));
  // The new token is not valid yet, the old one still is.
  for (const { url } of [a, b])
    expect([await statusOf(url, bearer(fresh)), await statusOf(url, bearer(a.token))]).toEqual([401, 200]);
  expect((await callOn(hosts, 'a', 'link')).stdout).toMatch(/#code=prc_/);
  for (const { url } of [a, b]) {
    for (const headers of [{ cookie }, bearer(a.token)]) await expect.poll(() => statusOf(url, headers)).toBe(401);
    expect(await statusOf(url, bearer(fresh))).toBe(200);
  }
});

test('two rotations at once leave one token, and it is the one in the file', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a', { token: null });
  const rotated = await Promise.all([1, 2, 3].map(() => callOn(hosts, 'a', 'token', 'rotate', '--operator')));
  for (const each of rotated) expect(each).toMatchObject({ code: 0 });
  const token = readFileSync(join(hosts.site.root, 'data-a', 'token'), 'utf8').trim();
  expect((await operatorRows(hosts)).map(({ sha256 }) => sha256)).toEqual([hashToken(token)]);
  await expect.poll(() => statusOf(a.url, bearer(a.token))).toBe(401);
  expect(await statusOf(a.url, bearer(token))).toBe(200);
});

test('a command that cannot write a token prints what to do', async () => {
  const hosts = await withHosts({ files: 'host' });
  await hosts.start('a', { token: null });
  writeFileSync(join(hosts.site.root, 'data-file'), '');
  const { code, stderr } = await callOn(hosts, 'file', 'link');
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^parley: The operator token cannot be .*data-file \([A-Z]+\)\. .*set PARLEY_TOKEN/),
  ]);
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

test('tokens are revoked on all hosts even if the journal cannot be written; the exit code reports that', async () => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const tokens = new Map<string, string>();
  for (const name of ['anna', 'bert']) tokens.set(name, (await call(hosts, 'token', 'add', name)).stdout.trim());
  const { stdout: operator } = await call(hosts, 'token', 'rotate', '--operator');
  const statusWith = (token: string) => statusOf(a.url, { authorization: `Bearer ${token}` });
  await hosts.database.query('ALTER TABLE parley.audit RENAME TO other');
  const said = {
    code: 1,
    stderr: expect.stringContaining('could not be recorded in the administrative journal') as string,
  };
  expect(await call(hosts, 'token', 'rm', 'anna')).toMatchObject(said);
  const rotated = await call(hosts, 'token', 'rotate', 'bert');
  expect(rotated).toMatchObject(said);
  expect(await call(hosts, 'token', 'rotate', '--operator')).toMatchObject(said);
  for (const old of [...tokens.values(), operator.trim()]) await expect.poll(() => statusWith(old)).toBe(401);
  expect(await statusWith(rotated.stdout.trim())).toBe(200);
});
