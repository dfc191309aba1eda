// Hosts prove who they are before they are sent a token: a stranger where a host was learns none, whatever it has heard of the others. And
// what a browser was given by one host is good at all of them.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { proofOf } from '../../src/service/host-proof.js';
import { Database } from '../../src/store/postgres/database.js';
import { deriveToken, loadSecret } from '../../src/store/postgres/derive-token.js';
import { parley } from '../support/command.js';
import { becomes, withHosts, type Hosts } from '../support/hosts.js';
import type { ServerProcess } from '../support/served-process.js';
import { challengeIn, listenAsStranger } from '../support/stranger.js';

const CHALLENGE = 'a-challenge-of-somebody';

interface Ready {
  readonly host_id: string;
  readonly proof: string;
}

const readyOf = async ({ url }: ServerProcess, challenge = CHALLENGE) => (await (await fetch(`${url}/readyz?challenge=${challenge}`)).json()) as Ready;

async function secretOf({ database }: Hosts): Promise<string> {
  const db = new Database(database.url, { connections: 1 });
  onTestFinished(() => db.close());
  return loadSecret(db);
}

// It is gone, and listed all the same.
async function killListed({ database }: Hosts, server: ServerProcess, hostId: string): Promise<void> {
  server.child.kill('SIGKILL');
  await server.ended;
  await database.query(`UPDATE parley.hosts SET lease_until = clock_timestamp() + interval '1 hour' WHERE host_id = $1`, [hostId]);
}

// The other one has none of its files.
async function playedOnFirst(hosts: Hosts): Promise<{ a: ServerProcess; b: ServerProcess; id: string }> {
  const a = await hosts.start('a');
  const { run_id: id } = await a.client.create({ engine: 'rehearsal', prompt: '[[done 1]]' });
  await becomes(a.client, id).toBe('succeeded');
  return { a, b: await hosts.start('b'), id };
}

// Asked once: a client would try again.
async function filesOf({ url, token }: ServerProcess, id: string): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${url}/v1/runs/${id}/files`, { headers: { authorization: `Bearer ${token}` } });
  return { status: response.status, body: await response.json() };
}

// Repeats what the dead host has once answered, or has the question answered by a host that is alive, in turns.
function pretendToBe(before: Ready, alive: ServerProcess): RequestListener {
  let asked = 0;
  return async ({ url }: IncomingMessage, response: ServerResponse) => {
    asked += 1;
    response.end(asked % 2 === 1 ? JSON.stringify(before) : await (await fetch(`${alive.url}${url}`)).text());
  };
}

test('a host proves itself for any challenge, with what is made from the secret of the database', async () => {
  const hosts = await withHosts();
  const a = await hosts.start('a');
  const key = deriveToken(await secretOf(hosts), 'proof');
  const { host_id: id, ...answer } = await readyOf(a);
  expect(answer).toEqual({ status: 'ok', proof: proofOf(key, CHALLENGE, id) });
  expect(await (await fetch(`${a.url}/readyz`)).json()).toEqual({ status: 'ok', host_id: id });
  expect((await fetch(`${a.url}/readyz?challenge=short`)).status).toBe(400);
});

test('a stranger on the port of a host that died gets no token of a command, which goes to another host', async () => {
  const hosts = await withHosts();
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const before = await readyOf(a);
  await killListed(hosts, a, before.host_id);
  const stranger = await listenAsStranger(pretendToBe(before, b), a.port);
  // The dead one is the nearest.
  const call = () => parley(hosts.site, ['run', 'rehearsal', '[[done 1]]', '--scratch'], { env: { PARLEY_DATABASE_URL: hosts.database.url, HOSTNAME: 'a' } });
  for (const times of [1, 2]) {
    expect(await call()).toMatchObject({ code: 0 });
    expect(stranger.asked).toEqual(Array.from({ length: times }, () => 'GET /readyz undefined'));
  }
  // Both were done by the host that is there, not by the command itself.
  expect(await hosts.database.query('SELECT FROM parley.hosts')).toHaveLength(2);
});

test('a stranger on the port of a host that died gets no token of another host that looks for files there', async () => {
  const hosts = await withHosts({ files: 'host' });
  const { a, b, id } = await playedOnFirst(hosts);
  const before = await readyOf(a);
  expect((await filesOf(b, id)).status).toBe(200);
  await killListed(hosts, a, before.host_id);
  const stranger = await listenAsStranger(pretendToBe(before, b), a.port);
  for (const times of [1, 2]) {
    expect(await filesOf(b, id)).toMatchObject({ status: 503, body: { error: { code: 'FILES_UNREACHABLE' } } });
    expect(stranger.asked).toEqual(Array.from({ length: times }, () => 'GET /readyz undefined'));
  }
});

test('one that proves itself and leads elsewhere is not followed', async () => {
  const hosts = await withHosts({ files: 'host' });
  const { a, b, id } = await playedOnFirst(hosts);
  const key = deriveToken(await secretOf(hosts), 'proof');
  const { host_id: hostId } = await readyOf(a);
  await killListed(hosts, a, hostId);
  const elsewhere = await listenAsStranger((_request, response) => void response.end('{}'));
  const proved = await listenAsStranger(({ url = '' }, response) => {
    if (url.startsWith('/readyz')) return void response.end(JSON.stringify({ host_id: hostId, proof: proofOf(key, challengeIn(url), hostId) }));
    return void response.writeHead(307, { location: `${elsewhere.url}${url}` }).end();
  }, a.port);
  expect(await filesOf(b, id)).toMatchObject({ status: 503, body: { error: { code: 'FILES_UNREACHABLE' } } });
  expect(proved.asked).toEqual(['GET /readyz undefined', `GET /v1/runs/${id}/files Bearer ${deriveToken(await secretOf(hosts), 'hosts')}`]);
  expect(elsewhere.asked).toEqual([]);
});

test('a browser that was signed in by one host is signed in at another with a different data directory, and out at both', async () => {
  const hosts = await withHosts({ files: 'host' });
  const [a, b] = [await hosts.start('a', { token: null }), await hosts.start('b', { token: null })];
  const signedIn = await fetch(`${a.url}/v1/sign-in`, { method: 'POST', headers: { origin: a.url, 'content-type': 'application/json' }, body: JSON.stringify({ token: a.token }) });
  expect(signedIn.status).toBe(200);
  const [cookie = ''] = (signedIn.headers.get('set-cookie') ?? '').split(';');
  for (const { url } of [a, b]) expect(await (await fetch(`${url}/v1/me`, { headers: { cookie } })).json()).toMatchObject({ role: 'operator' });
  // The name is that of no other database, and tells nothing of this one.
  const [name = ''] = cookie.split('=');
  expect(name).toMatch(/^parley_[0-9a-f]{12}$/);
  const signedOut = await fetch(`${b.url}/v1/sign-out`, { method: 'POST', headers: { cookie, origin: b.url } });
  expect(signedOut.headers.get('set-cookie')).toMatch(new RegExp(`^${name}=; .*Max-Age=0`));
  // The other host has heard of it, or reads it again within two seconds.
  await expect.poll(async () => (await fetch(`${a.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
  expect((await fetch(`${b.url}/v1/me`, { headers: { cookie } })).status).toBe(401);
});

test('a database that has lost its secret is told in words', async () => {
  const hosts = await withHosts();
  await hosts.database.query(`DELETE FROM parley.meta WHERE key = 'secret'`);
  await expect(secretOf(hosts)).rejects.toMatchObject({ code: 'DATABASE_NOT_MIGRATED', message: expect.stringContaining('restore the row "secret"') as string });
  expect(await parley(hosts.site, ['run', 'rehearsal', '[[done 1]]'], { env: { PARLEY_DATABASE_URL: hosts.database.url } })).toMatchObject({ code: 1, stderr: expect.stringMatching(/^parley: the database has lost the secret .*\n$/) as string });
});
