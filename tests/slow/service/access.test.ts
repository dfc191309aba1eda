// Signing in, sessions, sign-in codes, delays and the administrative journal, over HTTP on a real socket.
import { createHash, createHmac } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '../../../src/kernel/clock.js';
import { rotateOperatorToken } from '../../../src/service/access/operator-token.js';
import { IDLE_MS, SESSION_MS } from '../../../src/service/access/sessions.js';
import { addToken, listTokens, removeToken } from '../../../src/service/access/tokens.js';
import { verifyAudit } from '../../../src/store/audit.js';
import { expectRefused, ask } from '../../support/raw-http.js';
import { serve, type Served } from '../../support/served.js';

const MADE = '2026-01-01T00:00:00.000Z';
const HOUR = 3_600_000;
let served: Served;
let skewMs = 0;
// The clock of the machine, moved by the test.
const clock: Clock = { now: () => systemClock.now() + skewMs };
beforeAll(async () => {
  served = await serve();
});
afterAll(() => served.close());

const post = (
  path: string,
  body: object | null,
  headers: Record<string, string> = { origin: served.url },
  on = served,
) => on.fetch(path, { method: 'POST', as: null, headers, ...(body === null ? {} : { body: JSON.stringify(body) }) });
const me = (cookie: string, on = served) => on.fetch('/v1/me', { as: null, headers: { cookie } });
const entriesOf = async (on = served) => {
  const entries = [];
  for (let after: number | null = 0; after !== null;) {
    const page = await on.client.audit({ after, limit: 100 });
    entries.push(...page.entries);
    after = page.next_after;
  }
  return entries;
};

describe('a session', () => {
  test('is random, is not the token, and cannot be made from anything that is stored', async () => {
    const token = served.tokenOf('replier');
    const [one, two] = [await served.signIn(token), await served.signIn(token)];
    expect(one).not.toBe(two);
    const secret = one.split('=')[1] ?? '';
    expect(Buffer.from(secret.replace('prs_', ''), 'base64url')).toHaveLength(32);
    expect((await served.fetch('/v1/me', { as: secret })).status).toBe(401);
    const [name = ''] = one.split('=');
    const database = ['parley.db', 'parley.db-wal']
      .map((file) => readFileSync(join(served.bench.data.path, file), 'latin1'))
      .join('');
    for (const kept of [secret, token]) expect(database.includes(kept)).toBe(false);
    // The content of a backup: hashes of tokens and of sessions, and those of the previous version.
    const sha256 = createHash('sha256').update(secret).digest('hex');
    expect(database).toContain(sha256);
    const known = [
      sha256,
      ...[
        { sha256: createHash('sha256').update(served.token).digest('hex') },
        ...listTokens(served.bench.data.path),
      ].flatMap(({ sha256: hash }) => [
        hash,
        createHmac('sha256', Buffer.from(hash, 'hex')).update('parley browser session').digest('base64url'),
      ]),
    ];
    for (const value of known)
      for (const headers of [
        ['cookie', `${name}=${value}`],
        ['authorization', `Bearer ${value}`],
      ] as const)
        expect((await served.fetch('/v1/me', { as: null, headers: Object.fromEntries([headers]) })).status).toBe(401);
    for (const body of known.flatMap((value) => [{ token: value }, { code: value }]))
      expect((await post('/v1/sign-in', body)).status).toBe(401);
  });

  test('ends with sign-out, deletion or its token, and is refused from the next request on', async () => {
    const token = addToken(served.bench.data.path, 'ends', { role: 'viewer', now: MADE });
    const [out, other, third] = [await served.signIn(token), await served.signIn(token), await served.signIn(token)];
    expect((await post('/v1/sign-out', null, { origin: served.url, cookie: out })).status).toBe(204);
    expect([(await me(out)).status, (await me(other)).status]).toEqual([401, 200]);
    const own = (await (await served.fetch('/v1/sessions', { as: null, headers: { cookie: other } })).json()) as {
      sessions: { session_id: string; current: boolean; person: string }[];
    };
    expect(own.sessions.map(({ current, person }) => [current, person])).toEqual([
      [true, 'ends'],
      [false, 'ends'],
    ]);
    const { session_id: id } = own.sessions[1] ?? { session_id: '' };
    expect(
      (
        await served.fetch(`/v1/sessions/${id}`, {
          method: 'DELETE',
          as: null,
          headers: { cookie: other, origin: served.url },
        })
      ).status,
    ).toBe(204);
    expect((await me(third)).status).toBe(401);
    expect((await served.fetch(`/v1/sessions/${id}`, { method: 'DELETE' })).status).toBe(404);
    removeToken(served.bench.data.path, 'ends');
    expect((await me(other)).status).toBe(401);
    // A token of the same name is another one.
    addToken(served.bench.data.path, 'ends', { role: 'viewer', now: MADE });
    expect((await me(other)).status).toBe(401);
  });

  test('of the operator ends when the token is rotated, and the new one is valid without a restart', async () => {
    const own = await serve();
    try {
      const cookie = await own.signIn();
      expect((await me(cookie, own)).status).toBe(200);
      const fresh = rotateOperatorToken(own.bench.data.path);
      expect([
        (await me(cookie, own)).status,
        (await own.fetch('/v1/me')).status,
        (await own.fetch('/v1/me', { as: fresh })).status,
      ]).toEqual([401, 401, 200]);
    } finally {
      await own.close();
    }
  });

  test('ends after its longest time, after a time without use, and when its token expires', async () => {
    const own = await serve({ bench: { clock } });
    try {
      const expiring = addToken(own.bench.data.path, 'soon', {
        role: 'viewer',
        now: MADE,
        expires_at: new Date(clock.now() + 1000 * 3600).toISOString(),
      });
      const [used, idle, short] = [await own.signIn(), await own.signIn(), await own.signIn(expiring)];
      skewMs = 2 * 1000 * 3600;
      expect([
        (await me(used, own)).status,
        (await me(short, own)).status,
        (await own.fetch('/v1/me', { as: expiring })).status,
      ]).toEqual([200, 401, 401]);
      for (skewMs = IDLE_MS / 2; skewMs < SESSION_MS; skewMs += IDLE_MS / 2) {
        expect((await me(used, own)).status).toBe(200);
        // The use is stored in the background.
        await expect
          .poll(
            async () =>
              (await own.client.sessions()).sessions.filter(
                ({ last_used_at: at }) => Date.parse(at) >= clock.now() - 30_000,
              ).length,
          )
          .toBe(1);
        if (skewMs > IDLE_MS) expect((await me(idle, own)).status).toBe(401);
      }
      skewMs = SESSION_MS + 60_000;
      expect((await me(used, own)).status).toBe(401);
    } finally {
      skewMs = 0;
      await own.close();
    }
  });

  test('of others is listed and ended by operators only', async () => {
    const [viewer, other] = [served.tokenOf('viewer'), served.tokenOf('viewer')];
    const cookie = await served.signIn(viewer);
    const mine = (await (await served.fetch('/v1/sessions', { as: viewer })).json()) as {
      sessions: { session_id: string }[];
    };
    const { session_id: id = '' } = mine.sessions[0] ?? {};
    expect(
      ((await (await served.fetch('/v1/sessions', { as: other })).json()) as { sessions: unknown[] }).sessions,
    ).toEqual([]);
    expect((await served.fetch(`/v1/sessions/${id}`, { method: 'DELETE', as: other })).status).toBe(404);
    expect((await served.client.sessions({ limit: 500 })).sessions.map(({ session_id: each }) => each)).toContain(id);
    await served.client.endSession(id);
    expect((await me(cookie)).status).toBe(401);
  });

  test('that ends takes its open stream with it', async () => {
    const cookie = await served.signIn();
    const stream = await served.fetch('/v1/interactions/events', { as: null, headers: { cookie } });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('event: ready')) text += (await reader?.read())?.value ?? '';
    await post('/v1/sign-out', null, { origin: served.url, cookie });
    const { run_id: id } = await served.client.create({
      engine: 'codex',
      prompt: '[[ask A secret?|a]]',
      execution_mode: 'interactive',
      permission: 'full',
    });
    await served.bench.orchestrator.waitUntilIdle(id);
    let after = '';
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) after += part.value;
    expect(after).not.toContain('secret');
    await served.client.cancel(id);
  });
});

describe('signing in', () => {
  test('is refused from another page, without an Origin, by GET, and as a form', async () => {
    const body = { token: served.token };
    for (const headers of [
      {},
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { origin: served.url, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'cors' },
    ]) {
      // fetch does not send these names itself, so the request is written by hand.
      const text = JSON.stringify(body);
      const answer = await ask(
        served.url,
        [
          `POST /v1/sign-in HTTP/1.1`,
          `Host: ${new URL(served.url).host}`,
          ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
          'Content-Type: application/json',
          `Content-Length: ${text.length}`,
          'Connection: close',
          '',
          text,
        ].join('\r\n'),
      );
      expectRefused(answer, 'ORIGIN_NOT_ALLOWED');
      expect(answer.head).not.toMatch(/set-cookie/i);
    }
    for (const path of [
      `/sign-in?token=${served.token}`,
      `/v1/sign-in?token=${served.token}`,
      `/?token=${served.token}`,
      `/#code=${served.token}`,
    ])
      expect((await served.fetch(path, { as: null })).headers.get('set-cookie')).toBeNull();
    const form = await served.fetch('/v1/sign-in', {
      method: 'POST',
      as: null,
      headers: { origin: served.url, 'content-type': 'application/x-www-form-urlencoded' },
      body: `token=${served.token}`,
    });
    expect([form.status, form.headers.get('set-cookie')]).toEqual([415, null]);
    for (const wrong of [{}, { token: served.token, code: 'x' }])
      expect((await post('/v1/sign-in', wrong)).status).toBe(400);
  });

  test('with one token is limited per minute, with another one it is not', async () => {
    const own = await serve({ bench: { clock } });
    try {
      const [busy, other] = [own.tokenOf('viewer'), own.tokenOf('viewer')];
      const signIn = (token: string) => post('/v1/sign-in', { token }, { origin: own.url }, own);
      for (let count = 0; count < 30; count += 1) expect((await signIn(busy)).status).toBe(200);
      const refused = await signIn(busy);
      expect([refused.status, ((await refused.json()) as { error: { code: string } }).error.code]).toEqual([
        429,
        'TOO_MANY_REQUESTS',
      ]);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(refused.headers.get('set-cookie')).toBeNull();
      expect((await signIn(other)).status).toBe(200);
      expect((await entriesOf(own)).filter(({ type }) => type === 'sign_in')).toHaveLength(31);
      skewMs = 60_001;
      expect((await signIn(busy)).status).toBe(200);
    } finally {
      skewMs = 0;
      await own.close();
    }
  });

  test('with a code works once, for whom it was made, until it expires or its token is revoked', async () => {
    const own = await serve({ bench: { clock } });
    try {
      const path = own.bench.data.path;
      addToken(path, 'anna-phone', { role: 'replier', now: MADE, person: 'anna' });
      const link = await own.client.createSignInCode({ as: 'anna-phone' });
      expect(link).toMatchObject({ name: 'anna', role: 'replier', url: `${own.url}/#code=${link.code}` });
      expect(Date.parse(link.expires_at) - clock.now()).toBeLessThanOrEqual(600_000);
      const racing = await Promise.all(
        Array.from({ length: 8 }, () => post('/v1/sign-in', { code: link.code }, { origin: own.url }, own)),
      );
      expect(racing.map(({ status }) => status).toSorted()).toEqual([200, ...Array.from({ length: 7 }, () => 401)]);
      const cookie =
        racing
          .find(({ status }) => status === 200)
          ?.headers.get('set-cookie')
          ?.split(';')[0] ?? '';
      expect(await (await me(cookie, own)).json()).toEqual({ name: 'anna', role: 'replier' });
      const [late, revoked] = [
        await own.client.createSignInCode({ expires_in_sec: 60 }),
        await own.client.createSignInCode({ as: 'anna-phone' }),
      ];
      skewMs = 60_001;
      expect((await post('/v1/sign-in', { code: late.code }, { origin: own.url }, own)).status).toBe(401);
      removeToken(path, 'anna-phone');
      expect((await post('/v1/sign-in', { code: revoked.code }, { origin: own.url }, own)).status).toBe(401);
      expect((await me(cookie, own)).status).toBe(401);
      await expect(own.client.createSignInCode({ as: 'anna-phone' })).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        message: expect.stringContaining('anna-phone') as string,
      });
    } finally {
      skewMs = 0;
      await own.close();
    }
  });

  test('sets a Secure cookie where the public address is https, and makes links with that address', async () => {
    const own = await serve({ baseUrl: () => 'https://parley.example.com' });
    try {
      expect((await own.client.createSignInCode()).url).toMatch(/^https:\/\/parley\.example\.com\/#code=prc_/);
      expect(
        (await post('/v1/sign-in', { token: own.token }, { origin: own.url }, own)).headers.get('set-cookie'),
      ).toMatch(/; HttpOnly; SameSite=Lax; Max-Age=\d+; Secure$/);
      expect((await post('/v1/sign-in', { token: served.token })).headers.get('set-cookie')).not.toContain('Secure');
    } finally {
      await own.close();
    }
  });
});

const countOf = (body: object): number => (body as { addresses: Record<string, number> }).addresses['127.0.0.1'] ?? 0;

describe('wrong credentials', () => {
  test('are answered later and later, a valid token never, and their address is in the log', async () => {
    // After the first failure each one would wait until the server is closed; at most three may.
    const attemptLimits = {
      free: 1,
      firstDelayMs: HOUR,
      longestDelayMs: HOUR,
      mostDelayed: 3,
      mostDelayedPerAddress: 3,
    };
    const own = await serve({ attemptLimits });
    const wrong = () => own.fetch('/v1/me', { as: 'prl_wrong' });
    let isClosed = false;
    try {
      expect((await wrong()).status).toBe(401);
      const waiting = Array.from({ length: 40 }, () => wrong().then(({ status }) => status));
      const refusals = () => own.logged.filter((line) => line.includes('"status":429'));
      await expect.poll(() => refusals().length).toBe(37);
      for (let count = 0; count < 20; count += 1) expect((await own.fetch('/v1/me')).status).toBe(200);
      const many = await wrong();
      // Otherwise one connection could try thousands of tokens a second.
      expect([many.status, many.headers.get('retry-after'), many.headers.get('connection')]).toEqual([
        429,
        '3600',
        'close',
      ]);
      expect(((await many.json()) as { error: { code: string } }).error.code).toBe('TOO_MANY_ATTEMPTS');
      const warned = own.logged.filter((line) => line.includes('a wrong token, code or session'));
      expect(warned.every((line) => line.includes('"address":"127.0.0.1"'))).toBe(true);
      expect(warned.length).toBeLessThan(3);
      expect(refusals().every((line) => line.includes('"address":"127.0.0.1"'))).toBe(true);
      const failed = (await entriesOf(own)).filter(({ type }) => type === 'sign_in.failed');
      expect(failed.reduce((sum, { body }) => sum + countOf(body), 0)).toBe(42);
      // A waiting caller gets a response when the server ends.
      isClosed = true;
      await own.close();
      expect(
        (await Promise.allSettled(waiting)).filter((each) => each.status === 'fulfilled' && each.value === 429),
      ).toHaveLength(37);
    } finally {
      if (!isClosed) await own.close();
    }
  });

  test('are counted for the client behind a trusted proxy, else for the peer itself', async () => {
    const own = await serve({ trustedProxies: ['127.0.0.0/8'] });
    try {
      for (const [on, header] of [
        [own, '203.0.113.9, 198.51.100.4'],
        [served, '198.51.100.4'],
      ] as const)
        expect((await on.fetch('/v1/me', { as: 'prl_wrong', headers: { 'x-forwarded-for': header } })).status).toBe(
          401,
        );
      const addresses = async (on: Served) =>
        (await entriesOf(on))
          .filter(({ type }) => type === 'sign_in.failed')
          .flatMap(({ body }) => Object.keys((body as { addresses: object }).addresses));
      expect(await addresses(own)).toEqual(['198.51.100.4']);
      expect(await addresses(served)).not.toContain('198.51.100.4');
    } finally {
      await own.close();
    }
  });
});

describe('the administrative journal', () => {
  test('records who did what from where, is for operators only, and holds no secret', async () => {
    const own = await serve({ trustedProxies: ['127.0.0.1'] });
    try {
      const token = addToken(own.bench.data.path, 'anna-phone', { role: 'operator', now: MADE, person: 'anna' });
      const answer = await own.fetch('/v1/sign-in', {
        method: 'POST',
        as: null,
        headers: { origin: own.url, 'x-forwarded-for': '198.51.100.4', 'user-agent': 'Test/1' },
        body: JSON.stringify({ token }),
      });
      const cookie = answer.headers.get('set-cookie')?.split(';')[0] ?? '';
      const as = { origin: own.url, cookie, 'x-forwarded-for': '198.51.100.4' };
      const { run_id: id } = await own.client.create({ engine: 'codex', prompt: '[[answer x]]' });
      const { heads } = await own.bench.orchestrator.waitUntilIdle(id);
      expect((await own.fetch(`/v1/runs/${id}/archive`, { as: null, headers: as })).status).toBe(200);
      expect((await own.fetch(`/v1/runs/run_${'0'.repeat(26)}/archive`, { as: null, headers: as })).status).toBe(404);
      expect((await own.fetch(`/v1/runs/${id}`, { method: 'DELETE', as: null, headers: as })).status).toBe(204);
      const { code } = (await (
        await own.fetch('/v1/sign-in-codes', { method: 'POST', as: null, headers: as, body: '{}' })
      ).json()) as { code: string };
      await own.fetch('/v1/sign-out', { method: 'POST', as: null, headers: as });
      const anna = { kind: 'token', name: 'anna', token: 'anna-phone' };
      const entries = await entriesOf(own);
      expect(
        entries.map(({ type, actor, address, body }) => [type, actor, address, (body as { run_id?: string }).run_id]),
      ).toEqual([
        ['sign_in', anna, '198.51.100.4', undefined],
        ['archive.downloaded', anna, '198.51.100.4', id],
        ['run.deleted', anna, '198.51.100.4', id],
        ['code.created', anna, '198.51.100.4', undefined],
        ['sign_out', anna, '198.51.100.4', undefined],
      ]);
      expect(entries[2]?.body).toEqual({ run_id: id, rasp_seq: heads.rasp_seq, digest: heads.digest });
      for (const secret of [token, own.token, code, cookie.split('=')[1] ?? ''])
        expect(JSON.stringify(entries)).not.toContain(secret);
      expect(await verifyAudit(own.bench.data.access)).toMatchObject({ ok: true, rows: 5 });
      for (const role of ['viewer', 'replier'] as const)
        expect((await own.fetch('/v1/audit', { as: own.tokenOf(role) })).status).toBe(403);
      const page = await own.client.audit({ after: 1, limit: 2 });
      expect([page.entries.map(({ seq }) => seq), page.next_after, page.head.seq]).toEqual([[2, 3], 3, 5]);
    } finally {
      await own.close();
    }
  });
});

test('two Host headers are refused, whichever of them is right', async () => {
  const { host } = new URL(served.url);
  for (const lines of [
    [`Host: ${host}`, 'Host: evil.example'],
    ['Host: evil.example', `Host: ${host}`],
    [`Host: ${host}`, `host: ${host}`],
  ]) {
    expectRefused(
      await ask(
        served.url,
        ['GET /v1/me HTTP/1.1', ...lines, `Authorization: Bearer ${served.token}`, 'Connection: close', '', ''].join(
          '\r\n',
        ),
      ),
      'INVALID_ARGUMENT',
    );
  }
});
