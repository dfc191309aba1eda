// Access from the command line: the output of serve, links, tokens that expire and rotate while a server runs,
// sessions, and the journal.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openDatabase } from '../../../src/store/sqlite/open-database.js';
import { createSite, onTerminal, parley, start, type Site } from '../../support/command.js';
import { startServer, type ServerProcess } from '../../support/served-process.js';

const statusOf = async ({ url }: ServerProcess, headers: Record<string, string>): Promise<number> =>
  (await fetch(`${url}/v1/me`, { headers })).status;
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const signIn = async ({ url }: ServerProcess, body: object): Promise<string> => {
  const answer = await fetch(`${url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
};
const configure = (site: Site, settings: object): void => {
  mkdirSync(site.data, { recursive: true, mode: 0o700 });
  writeFileSync(join(site.data, 'config.json'), JSON.stringify(settings), { mode: 0o600 });
};
const audit = async (site: Site) =>
  (await parley(site, ['audit', '--all', '--json'])).stdout
    .trim()
    .split('\n')
    .map(
      (line) =>
        (
          JSON.parse(line) as {
            entry: { type: string; actor: object; address: string | null; body: Record<string, unknown> };
          }
        ).entry,
    );

test('serve prints a secret on a terminal only, and there a link that works once', async () => {
  const site = createSite();
  const json = start(site, ['serve', '--port', '0', '--json']);
  await json.waitFor('serving');
  json.child.kill('SIGTERM');
  const printed = await json.ended;
  const plain = start(site, ['serve', '--port', '0']);
  await plain.waitFor('Ctrl-C');
  plain.child.kill('SIGTERM');
  const { stdout, stderr } = await plain.ended;
  const token = readFileSync(join(site.data, 'token'), 'utf8').trim();
  for (const text of [printed.stdout, printed.stderr, stdout, stderr]) {
    expect(text).not.toContain(token);
    expect(text).not.toMatch(/prl_|prc_|prs_|code=|token=/);
  }
  expect(stdout).toMatch(/open +http:\/\/127\.0\.0\.1:\d+\n/);
  const pty = onTerminal(site, ['serve', '--port', '0'], { cols: 200 });
  await pty.waitFor('Ctrl-C');
  const [, url = '', code = ''] = /open +(http:\/\/\S+?)\/#code=(prc_[\w-]+)/.exec(pty.output()) ?? [];
  expect(pty.output()).not.toContain(token);
  const body = JSON.stringify({ code });
  const once = () =>
    fetch(`${url}/v1/sign-in`, { method: 'POST', headers: { origin: url, 'content-type': 'application/json' }, body });
  expect([(await once()).status, (await once()).status]).toEqual([200, 401]);
  pty.interrupt();
  expect(await pty.exit).toBe(0);
});

test('a weak PARLEY_TOKEN is refused with the way to make a better one', async () => {
  const site = createSite();
  for (const weak of ['aaaaaaaaaaaaaaaa', 'a'.repeat(40), 'secret-secret-secret-secret-secret']) {
    const { code, stderr, stdout } = await parley(site, ['serve', '--port', '0'], { env: { PARLEY_TOKEN: weak } });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/PARLEY_TOKEN is too easy to guess.*openssl rand -hex 32/);
    expect(stderr).not.toContain(weak);
  }
});

test('link makes a code for a person, warns about loopback, and draws a QR code on a terminal', async () => {
  const site = createSite();
  expect(await parley(site, ['link'])).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/No server is running for .*parley serve/) as string,
  });
  await parley(site, ['token', 'add', 'anna-phone', '--person', 'anna', '--role', 'viewer']);
  const server = await startServer(site);
  const { code, stdout, stderr } = await parley(site, ['link', '--as', 'anna-phone', '--expires', '1h']);
  expect(code).toBe(0);
  expect(stdout).toMatch(new RegExp(`^${server.url}/#code=prc_[\\w-]{32}\n$`));
  expect(stderr).toMatch(
    /as anna \(viewer\), once, until .*\nOnly this machine can open it: 127\.0\.0\.1 is a loopback address.*public_url/,
  );
  const cookie = await signIn(server, { code: stdout.trim().split('code=')[1] });
  expect(await statusOf(server, { cookie })).toBe(200);
  expect(await parley(site, ['link', '--as', 'nobody'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('no valid token named "nobody"') as string,
  });
  expect(await parley(site, ['link', '--expires', '2d'])).toMatchObject({ code: 2 });
  const pty = onTerminal(site, ['link'], { cols: 120 });
  expect(await pty.exit).toBe(0);
  expect(pty.output()).toMatch(/█{20,}\r\n/);
  expect(pty.output()).toMatch(/#code=prc_/);
});

test('public_url is in links, in cookies that are Secure, and is a name the server answers to', async () => {
  const site = createSite();
  configure(site, { public_url: 'https://parley.example.com' });
  const server = await startServer(site);
  const { stdout, stderr } = await parley(site, ['link']);
  expect(stdout).toMatch(/^https:\/\/parley\.example\.com\/#code=prc_/);
  expect(stderr).not.toContain('loopback');
  const answer = await fetch(`${server.url}/v1/sign-in`, {
    method: 'POST',
    headers: { origin: 'https://parley.example.com', 'content-type': 'application/json' },
    body: JSON.stringify({ token: server.token }),
  });
  expect(answer.headers.get('set-cookie')).toContain('; Secure');
});

test('a token shows its last use and rotates beside a server: the old value and its sessions stop', async () => {
  const site = createSite();
  const server = await startServer(site);
  const old = (await parley(site, ['token', 'add', 'bot', '--role', 'viewer', '--expires', '90d'])).stdout.trim();
  expect(await statusOf(server, bearer(old))).toBe(200);
  const cookie = await signIn(server, { token: old });
  await expect
    .poll(async () => (await parley(site, ['token', 'ls'])).stdout)
    .toMatch(/bot +bot +viewer +\d{4}-\S+ +\d{4}-\S+ +\d{4}-\S+Z/);
  const rotated = await parley(site, ['token', 'rotate', 'bot']);
  expect(rotated.code).toBe(0);
  const fresh = rotated.stdout.trim();
  expect([
    await statusOf(server, bearer(old)),
    await statusOf(server, { cookie }),
    await statusOf(server, bearer(fresh)),
  ]).toEqual([401, 401, 200]);
  const operator = await signIn(server, { token: server.token });
  const again = await parley(site, ['token', 'rotate', '--operator']);
  expect(again).toMatchObject({ code: 0, stderr: '' });
  expect([
    await statusOf(server, bearer(server.token)),
    await statusOf(server, { cookie: operator }),
    await statusOf(server, bearer(again.stdout.trim())),
  ]).toEqual([401, 401, 200]);
  // Commands continue with the new one.
  expect((await parley(site, ['link'])).code).toBe(0);
  for (const wrong of [
    ['token', 'rotate'],
    ['token', 'rotate', 'bot', '--operator'],
    ['token', 'rotate', 'nobody'],
    ['token', 'add', 'x', '--expires', '5'],
    ['token', 'add', 'x', '--person', 'a\nb'],
  ])
    expect((await parley(site, wrong)).code).toBe(2);
});

test('sessions are listed and ended beside a running server, and refused from the next request on', async () => {
  const site = createSite();
  const server = await startServer(site);
  expect((await parley(site, ['token', 'sessions'])).stderr).toBe('no browser is signed in\n');
  const [one, two] = [await signIn(server, { token: server.token }), await signIn(server, { token: server.token })];
  const listed = (await parley(site, ['token', 'sessions', '--json'])).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { session_id: string; address: string });
  expect(listed.map(({ address }) => address)).toEqual(['127.0.0.1', '127.0.0.1']);
  expect((await parley(site, ['token', 'sessions', '--end', listed[0]?.session_id ?? ''])).code).toBe(0);
  expect([await statusOf(server, { cookie: one }), await statusOf(server, { cookie: two })]).toEqual([401, 200]);
  expect((await parley(site, ['token', 'sessions', '--end', 'ses_none'])).stderr).toMatch(/no session "ses_none"/);
  expect((await parley(site, ['token', 'sessions'])).stdout).toContain(listed[1]?.session_id);
});

test('the journal has token, run and settings changes without secrets, and tampering is detected', async () => {
  const site = createSite();
  configure(site, {
    slots: 2,
    webhooks: [{ name: 'chat', url: 'http://127.0.0.1:1/very-secret-path', secret_env: 'CHAT' }],
  });
  const env = { CHAT: 'a-secret-of-sixteen-bytes' };
  const token = (await parley(site, ['token', 'add', 'anna'])).stdout.trim();
  for (const settings of [null, { slots: 3 }, null]) {
    if (settings) configure(site, settings);
    const server = await startServer(site, ['--port', '0'], { env });
    server.child.kill('SIGTERM');
    await server.ended;
  }
  await parley(site, ['run', 'rehearsal', '[[done 1]]', '--scratch']);
  expect((await parley(site, ['rm', 'last'])).code).toBe(0);
  await parley(site, ['token', 'rm', 'anna']);
  const entries = await audit(site);
  expect(entries.map(({ type, body }) => [type, body['changed'] ?? body['name'] ?? null])).toEqual([
    ['token.added', 'anna'],
    ['settings.changed', ['slots', 'webhooks']],
    ['settings.changed', ['slots', 'webhooks']],
    ['run.deleted', null],
    ['token.removed', 'anna'],
  ]);
  expect(entries[3]).toMatchObject({
    actor: { kind: 'user' },
    address: null,
    body: {
      run_id: expect.stringMatching(/^run_/) as string,
      digest: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    },
  });
  for (const secret of [token, 'very-secret-path']) expect(JSON.stringify(entries)).not.toContain(secret);
  expect((await parley(site, ['audit'])).stdout.split('\n')).toHaveLength(6);
  expect((await parley(site, ['audit', '-n', '2'])).stdout).toMatch(/^4 .*run\.deleted.*\n5 .*token\.removed.*\n$/);
  expect(await parley(site, ['audit', '--verify'])).toMatchObject({
    code: 0,
    stdout: 'unchanged: 5 rows of the administrative journal\n',
  });
  const db = await openDatabase(join(site.data, 'parley.db'));
  db.exec(`DROP TRIGGER audit_keeps_values; UPDATE audit SET actor_json = NULL WHERE seq = 4`);
  db.close();
  expect(await parley(site, ['audit', '--verify'])).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('CHANGED: row 4 was changed') as string,
  });
  const doctor = await parley(site, ['doctor']);
  expect([doctor.code, doctor.stdout]).toEqual([
    1,
    expect.stringContaining('the administrative journal was altered: row 4') as string,
  ]);
});

test('a test delivery to a webhook is signed, and its result is reported', async () => {
  const site = createSite();
  const bodies: { headers: Record<string, unknown>; body: Record<string, unknown> }[] = [];
  const receiver = createServer((request, response) => {
    let text = '';
    request
      .setEncoding('utf8')
      .on('data', (part: string) => (text += part))
      .on('end', () => {
        bodies.push({ headers: request.headers, body: JSON.parse(text) as Record<string, unknown> });
        response.writeHead(bodies.length === 1 ? 204 : 500).end();
      });
  });
  await new Promise<void>((resolve) => void receiver.listen(0, '127.0.0.1', resolve));
  try {
    configure(site, {
      public_url: 'https://parley.example.com',
      webhooks: [
        { name: 'chat', url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`, secret_env: 'CHAT' },
      ],
    });
    const env = { CHAT: 'a-secret-of-sixteen-bytes' };
    expect(await parley(site, ['webhook', 'test', 'chat'], { env })).toMatchObject({
      code: 0,
      stdout: 'delivered to "chat"\n',
    });
    expect(bodies[0]?.body).toMatchObject({ type: 'test', url: 'https://parley.example.com' });
    expect(bodies[0]?.headers['webhook-signature']).toMatch(/^v1,/);
    expect(await parley(site, ['webhook', 'test', 'chat'], { env })).toMatchObject({
      code: 1,
      stdout: 'not delivered to "chat": HTTP 500\n',
    });
    expect(await parley(site, ['webhook', 'test', 'none'], { env })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('There is no webhook named "none"') as string,
    });
  } finally {
    receiver.close();
  }
});
