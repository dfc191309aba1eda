// Hosts prove their identity before they receive a token: another program on the port of a host gets none, whatever it
// has recorded or read in the database. A browser that is signed in at one host is signed in at all of them.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { createHmac, createPublicKey, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { makeHostIdentity } from '../../src/ownership/postgres/host-identity.js';
import { hashToken } from '../../src/service/access/tokens.js';
import { parley } from '../support/command.js';
import { becomes, withHosts, type Hosts } from '../support/hosts.js';
import type { ServerProcess } from '../support/served-process.js';
import { challengeIn, listenAsOtherProgram } from '../support/other-program.js';

const CHALLENGE = 'a-challenge-of-somebody';

interface Ready {
  readonly host_id: string;
  readonly proof: string;
}

const readyOf = async ({ url }: ServerProcess, challenge = CHALLENGE) =>
  (await (await fetch(`${url}/readyz?challenge=${challenge}`)).json()) as Ready;

interface HostRow {
  readonly token_sha256: string;
  readonly public_key: string;
}

async function rowOf({ database }: Hosts, hostId: string): Promise<HostRow> {
  const [row] = await database.query<HostRow>('SELECT token_sha256, public_key FROM parley.hosts WHERE host_id = $1', [
    hostId,
  ]);
  return row as HostRow;
}

// It has stopped, and is still listed.
async function killListed({ database }: Hosts, server: ServerProcess, hostId: string): Promise<void> {
  server.child.kill('SIGKILL');
  await server.ended;
  await database.query(
    `UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour' WHERE host_id = $1`,
    [hostId],
  );
}

// The other one has none of its files.
async function playedOnFirst(hosts: Hosts): Promise<{ a: ServerProcess; b: ServerProcess; id: string }> {
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await becomes(a.client, id).toBe('succeeded');
  return { a, b: await hosts.start('b'), id };
}

// Requested once: a client would retry.
async function filesOf({ url, token }: ServerProcess, id: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/v1/runs/${id}/files`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
}

// Repeats an earlier response of the dead host, or forwards the challenge to a live host, in turns.
function pretendToBe(before: Ready, alive: ServerProcess): RequestListener {
  let asked = 0;
  return async ({ url }: IncomingMessage, response: ServerResponse) => {
    asked += 1;
    response.end(asked % 2 === 1 ? JSON.stringify(before) : await (await fetch(`${alive.url}${url}`)).text());
  };
}

test('a host proves itself for any challenge with a key pair of its own; the database has the public key', async () => {
  const hosts = await withHosts();
  const [a, b] = [await hosts.start('a'), await hosts.start('b')];
  const { host_id: id, proof, ...answer } = await readyOf(a);
  const { public_key: text } = await rowOf(hosts, id);
  const key = createPublicKey({ key: Buffer.from(text, 'base64url'), format: 'der', type: 'spki' });
  expect(answer).toEqual({ status: 'ok' });
  expect(verify(null, Buffer.from(`${CHALLENGE} ${id}`), key, Buffer.from(proof, 'base64url'))).toBe(true);
  expect(await rowOf(hosts, (await readyOf(b)).host_id)).not.toMatchObject({ public_key: text });
  expect(await (await fetch(`${a.url}/readyz`)).json()).toEqual({ status: 'ok', host_id: id });
  expect((await fetch(`${a.url}/readyz?challenge=short`)).status).toBe(400);
});

test('another program on the port of a dead host gets no token; the command uses another host', async () => {
  const hosts = await withHosts();
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const before = await readyOf(a);
  await killListed(hosts, a, before.host_id);
  const other = await listenAsOtherProgram(pretendToBe(before, b), a.port);
  // The dead one is the nearest.
  const call = () =>
    parley(hosts.site, ['run', 'rehearsal', '[[done 1]]', '--scratch'], {
      env: { PARLEY_DATABASE_URL: hosts.database.url, HOSTNAME: 'a' },
    });
  for (const times of [1, 2]) {
    expect(await call()).toMatchObject({ code: 0 });
    expect(other.asked).toEqual(Array.from({ length: times }, () => 'GET /readyz undefined'));
  }
  // The live host did both, not the command itself.
  expect(await hosts.database.query('SELECT FROM parley.hosts')).toHaveLength(2);
});

test('an impostor on the port of a dead host gets no token from a host that reads files there', async () => {
  const hosts = await withHosts({ files: 'host' });
  const { a, b, id } = await playedOnFirst(hosts);
  const before = await readyOf(a);
  expect((await filesOf(b, id)).status).toBe(200);
  await killListed(hosts, a, before.host_id);
  const other = await listenAsOtherProgram(pretendToBe(before, b), a.port);
  for (const times of [1, 2]) {
    expect(await filesOf(b, id)).toMatchObject({ status: 503, body: { error: { code: 'FILES_UNREACHABLE' } } });
    expect(other.asked).toEqual(Array.from({ length: times }, () => 'GET /readyz undefined'));
  }
});

test('a program that knows everything in the database cannot prove itself as a host', async () => {
  const hosts = await withHosts({ files: 'host' });
  const { a, b, id } = await playedOnFirst(hosts);
  const { host_id: hostId } = await readyOf(a);
  await killListed(hosts, a, hostId);
  const row = await rowOf(hosts, hostId);
  const texts = [
    row.public_key,
    row.token_sha256,
    ...(await hosts.database.query<{ value: string }>('SELECT value FROM parley.meta')).map(({ value }) => value),
  ];
  const own = makeHostIdentity();
  const forgeries = [
    ...texts.map(
      (secret) => (challenge: string) =>
        createHmac('sha256', `prl_${createHmac('sha256', secret).update('proof').digest('base64url')}`)
          .update(`${challenge} ${hostId}`)
          .digest('base64url'),
    ),
    ...texts.map(
      (secret) => (challenge: string) =>
        createHmac('sha256', secret).update(`${challenge} ${hostId}`).digest('base64url'),
    ),
    (challenge: string) => own.prove(challenge, hostId),
  ];
  let asked = 0;
  const other = await listenAsOtherProgram(
    ({ url = '' }, response) =>
      void response.end(
        JSON.stringify({
          status: 'ok',
          host_id: hostId,
          proof: forgeries[asked++ % forgeries.length]?.(challengeIn(url)),
        }),
      ),
    a.port,
  );
  for (const _ of forgeries)
    expect(await filesOf(b, id)).toMatchObject({ status: 503, body: { error: { code: 'FILES_UNREACHABLE' } } });
  expect(other.asked).toEqual(forgeries.map(() => 'GET /readyz undefined'));
});

test('one that proves itself and leads elsewhere is not followed', async () => {
  const hosts = await withHosts({ files: 'host' });
  const { a, b, id } = await playedOnFirst(hosts);
  const { host_id: hostId } = await readyOf(a);
  await killListed(hosts, a, hostId);
  // Only a user with write access to the database can do this.
  const { publicKey, prove } = makeHostIdentity();
  await hosts.database.query('UPDATE parley.hosts SET public_key = $2 WHERE host_id = $1', [hostId, publicKey]);
  const elsewhere = await listenAsOtherProgram((_request, response) => void response.end('{}'));
  const proved = await listenAsOtherProgram(({ url = '' }, response) => {
    if (url.startsWith('/readyz'))
      return void response.end(JSON.stringify({ host_id: hostId, proof: prove(challengeIn(url), hostId) }));
    return void response.writeHead(307, { location: `${elsewhere.url}${url}` }).end();
  }, a.port);
  expect(await filesOf(b, id)).toMatchObject({ status: 503, body: { error: { code: 'FILES_UNREACHABLE' } } });
  const [, sent = ''] = / Bearer (\S+)$/.exec(proved.asked[1] ?? '') ?? [];
  expect(proved.asked).toEqual(['GET /readyz undefined', `GET /v1/runs/${id}/files Bearer ${sent}`]);
  // It received the token of the requesting host, and of no other.
  expect(hashToken(sent)).toBe((await rowOf(hosts, (await readyOf(b)).host_id)).token_sha256);
  expect(elsewhere.asked).toEqual([]);
});

test('signing in or out at one host applies at another host with a different data directory', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const signedIn = await fetch(`${a.url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: a.url, 'content-type': 'application/json' },
    body: JSON.stringify({ token: a.token }),
  });
  expect(signedIn.status).toBe(200);
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  for (const { url } of [a, b])
    expect(await (await fetch(`${url}/v1/me`, { headers: { cookie } })).json()).toMatchObject({ role: 'operator' });
  // The name belongs to no other database, and reveals nothing about this one.
  const [name = ''] = cookie.split('=');
  expect(name).toMatch(/^parley_[0-9a-f]{12}$/);
  const signedOut = await fetch(`${b.url}/v1/sign-out`, { method: 'POST', headers: { cookie, origin: b.url } });
  expect(signedOut.headers.get('set-cookie')).toMatch(new RegExp(`^${name}=; .*Max-Age=0`));
  // The other host was notified, or reads it again within two seconds.
  await expect.poll(async () => (await fetch(`${a.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
  expect((await fetch(`${b.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
});

test('a host token is accepted while its host has a lease, reads only and cannot sign in', async () => {
  const hosts = await withHosts({ files: 'host' });
  const a = await hosts.start('a');
  const { token, tokenSha256 } = makeHostIdentity();
  const call = (path: string, init: RequestInit = {}) =>
    fetch(`${a.url}${path}`, {
      ...init,
      headers: { authorization: `Bearer ${token}`, origin: a.url, 'content-type': 'application/json' },
    });
  const me = async () => (await call('/v1/me')).status;
  expect(await me()).toBe(401);
  await hosts.database.query(
    `INSERT INTO parley.hosts
      (host_id, name, started_at, lease_until, info_json, site, place, token_sha256, public_key, generation)
    VALUES ('h', 'h', clock_timestamp(), clock_timestamp() + interval '1 hour', '{}', 'h', '/h', $1, '', 5)`,
    [tokenSha256],
  );
  // It is known at once, without a notification.
  expect(await me()).toBe(200);
  expect(await (await call('/v1/me')).json()).toMatchObject({ role: 'viewer' });
  expect(
    (await call('/v1/runs', { method: 'POST', body: JSON.stringify({ engine: 'rehearsal', prompt: 'x' }) })).status,
  ).toBe(403);
  expect((await call('/v1/sign-in', { method: 'POST', body: JSON.stringify({ token }) })).status).toBe(401);
  await hosts.database.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() WHERE host_id = 'h'`);
  await expect.poll(me, { timeout: 10_000 }).toBe(401);
});

test('a database that has lost its id is reported with the statement that makes another', async () => {
  const hosts = await withHosts();
  await hosts.database.query(`DELETE FROM parley.meta WHERE key = 'database_id'`);
  const run = () =>
    parley(hosts.site, ['run', 'rehearsal', '[[done 1]]'], { env: { PARLEY_DATABASE_URL: hosts.database.url } });
  const { code, stderr } = await run();
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(/^parley: The database has lost its id\. Make another: INSERT .*\n$/),
  ]);
  await hosts.database.query(/INSERT .*/.exec(stderr)?.[0] ?? '');
  expect(await run()).toMatchObject({ code: 0 });
});
