// A login of Claude Code that expires is renewed in the user's own file, once for all runs. The service for that has a
// fixed address: a proxy on loopback answers for it, with a certificate of this test.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { openRealBench } from './real-bench.js';

const SERVICE = 'platform.claude.com';

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return (server.address() as AddressInfo).port;
}

// Accepts each refresh token once. All other requests to the outside get a 404.
async function startService(renewals: string[]): Promise<Record<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'parley-login-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const names = `subjectAltName=DNS:${SERVICE},DNS:api.anthropic.com`;
  const made = ['-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2'];
  execFileSync('openssl', ['req', '-x509', ...made, '-subj', `/CN=${SERVICE}`, '-addext', names], { stdio: 'ignore' });
  const service = createTlsServer({ key: readFileSync(key), cert: readFileSync(cert) }, async (request, response) => {
    const body = await text(request);
    if (request.headers.host !== SERVICE || request.url !== '/v1/oauth/token')
      return void response.writeHead(404, { 'content-type': 'application/json' }).end('{}');
    const { refresh_token: refreshToken } = JSON.parse(body) as { refresh_token: string };
    renewals.push(refreshToken);
    if (refreshToken !== 'first' || renewals.length > 1)
      return void response.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"invalid_grant"}');
    response.writeHead(200, { 'content-type': 'application/json' }).end(
      JSON.stringify({
        token_type: 'Bearer',
        access_token: 'renewed',
        refresh_token: 'second',
        expires_in: 28_800,
        scope: 'user:inference user:profile',
      }),
    );
  });
  const inside = await listen(service);
  const proxy = createServer();
  proxy.on('connect', (_request, client) => {
    const upstream = connect(inside, '127.0.0.1');
    for (const socket of [client, upstream]) socket.on('error', () => {});
    client.write('HTTP/1.1 200 OK\r\n\r\n');
    client.pipe(upstream).pipe(client);
  });
  return {
    HTTPS_PROXY: `http://127.0.0.1:${await listen(proxy)}`,
    NO_PROXY: '127.0.0.1',
    NODE_EXTRA_CA_CERTS: cert,
  };
}

test('eight runs at once with an expired login renew it once, in the file of the user', async () => {
  const renewals: string[] = [];
  const service = await startService(renewals);
  const bench = await openRealBench('claude', {
    env: () => ({ ...service, ANTHROPIC_API_KEY: undefined }),
    settings: { slots: 8 },
  });
  const folder = join(bench.root, 'user/.claude');
  mkdirSync(folder, { recursive: true });
  const login = join(folder, '.credentials.json');
  const oauth = { accessToken: 'old', refreshToken: 'first', expiresAt: 1, scopes: ['user:inference', 'user:profile'] };
  writeFileSync(login, JSON.stringify({ claudeAiOauth: { ...oauth, subscriptionType: 'max' } }), { mode: 0o600 });
  const runs = await Promise.all(Array.from({ length: 8 }, (_, index) => bench.play(`[[done ${index}]]`)));
  expect(runs.map(({ result }) => result)).toEqual(runs.map((_, index) => index));
  expect(renewals).toEqual(['first']);
  expect(JSON.parse(readFileSync(login, 'utf8'))).toMatchObject({
    claudeAiOauth: { accessToken: 'renewed', refreshToken: 'second' },
  });
  expect(lstatSync(login).isFile()).toBe(true);
  expect(lstatSync(login).mode & 0o077).toBe(0);
  expect(readdirSync(folder).toSorted()).toEqual(['.credentials.json', 'settings.json']);
  for (const { spec } of runs) expect(readdirSync(join(spec.home ?? '', '.claude'))).not.toContain('.credentials.json');
});
