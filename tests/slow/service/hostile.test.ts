// Malicious input over real sockets: each is refused in the one envelope with a code of the contract, the log has
// neither a secret nor a defect, and other clients are served normally.
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { CommitWakeups } from '../../../src/journal/wakeups.js';
import { DEFAULT_LIMITS } from '../../../src/service/service.js';
import { addToken, removeToken } from '../../../src/service/access/tokens.js';
import { answersIn, ask, exchange, expectRefused, open } from '../../support/raw-http.js';
import { serve, type Served } from '../../support/served.js';

const ASK = '[[ask Which?|a|b]]';
const MB = 1024 * 1024;

let served: Served;
let runId: string;
let host: string;
beforeAll(async () => {
  served = await serve();
  host = new URL(served.url).host;
  mkdirSync(join(served.root, 'allowed', 'project'), { recursive: true });
  runId = await waiting();
});
afterAll(() => served.close());

afterEach(async () => {
  expect((await served.client.get(runId)).status).toBe('waiting_user');
  const log = served.logged.splice(0).join('');
  expect(log).not.toContain(served.token);
  expect(log).not.toContain('INTERNAL');
  expect(log).not.toMatch(/"level":[56]0/);
});

async function waiting(prompt = ASK): Promise<string> {
  const { run_id: id } = await served.client.create({
    engine: 'codex',
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
  });
  expect((await served.bench.orchestrator.waitUntilIdle(id)).status).toBe('waiting_user');
  return id;
}

const line = (request: string, headers: readonly string[] = [], body = '') =>
  [
    `${request} HTTP/1.1`,
    `Host: ${host}`,
    `Authorization: Bearer ${served.token}`,
    'Connection: close',
    ...headers,
    '',
    body,
  ].join('\r\n');
const keptOpen = (request: string) => request.replace('Connection: close\r\n', '');
const post = (body: string, headers: readonly string[] = ['Content-Type: application/json']) =>
  line('POST /v1/runs', [...headers, `Content-Length: ${Buffer.byteLength(body)}`], body);
const refused = async (response: Response | Promise<Response>, code?: Parameters<typeof expectRefused>[1]) => {
  const answer = await response;
  expectRefused({ status: answer.status, body: await answer.text() }, code);
};
const watched = () => (served.bench.orchestrator.wakeups as CommitWakeups).watched;
const until = (look: () => boolean) => expect.poll(look, { timeout: 30_000, interval: 20 }).toBe(true);

describe('bodies', () => {
  test.each([
    ['cut off', '{"engine":"codex"'],
    ['not JSON', 'engine=codex'],
    ['empty', ''],
    ['a list', '[]'],
    ['null', 'null'],
    ['a number', '1e999'],
    ['bytes that are no text', '\0\x01\x02'],
    ['nested a hundred thousand deep', `${'['.repeat(100_000)}${']'.repeat(100_000)}`],
    ['a prototype', '{"engine":"codex","prompt":"x","__proto__":{"admin":true}}'],
    ['a prototype within', '{"engine":"codex","prompt":"x","labels":{"__proto__":{"a":"b"}}}'],
    ['a constructor', '{"engine":"codex","prompt":"x","runtime_options":{"constructor":{"prototype":{"a":1}}}}'],
    ['a schema that is none', '{"engine":"codex","prompt":"x","output_schema":{"type":"nonsense"}}'],
    ['a schema from elsewhere', '{"engine":"codex","prompt":"x","output_schema":{"$ref":"http://127.0.0.1:1/x"}}'],
  ])('%s is refused', async (_what, body) => {
    expectRefused(await ask(served.url, post(body)), 'INVALID_ARGUMENT');
  });

  test('JSON that is nested too deeply is refused everywhere', async () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const { interaction_id: id } = await served.client.interaction(runId);
    for (const [path, body] of [
      [`/v1/runs/${runId}/interaction/reply`, `{"interaction_id":"${id}","response":${deep}}`],
      ['/v1/runs', `{"engine":"codex","prompt":"x","runtime_options":{"deep":${deep}}}`],
      ['/v1/runs', `{"engine":"codex","prompt":"x","output_schema":{"enum":${deep}}}`],
    ] as const)
      await refused(served.fetch(path, { method: 'POST', body }), 'INVALID_ARGUMENT');
  });

  test('a hundred megabytes are refused, said beforehand or not, and are not kept in memory', async () => {
    const chunk = Buffer.alloc(64 * 1024, 0x20);
    const before = process.memoryUsage().rss;
    const declared = (function* () {
      yield keptOpen(line('POST /v1/runs', ['Content-Type: application/json', `Content-Length: ${100 * MB}`]));
      for (let sent = 0; sent < 100 * MB; sent += chunk.length) yield chunk;
    })();
    expectRefused(await ask(served.url, declared), 'BODY_TOO_LARGE');
    const chunked = (function* () {
      yield keptOpen(line('POST /v1/runs', ['Content-Type: application/json', 'Transfer-Encoding: chunked']));
      for (let sent = 0; sent < 100 * MB; sent += chunk.length)
        yield Buffer.concat([Buffer.from(`${chunk.length.toString(16)}\r\n`), chunk, Buffer.from('\r\n')]);
    })();
    expectRefused(await ask(served.url, chunked), 'BODY_TOO_LARGE');
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * MB);
  });

  test.each([
    ['text', ['Content-Type: text/plain'], 'UNSUPPORTED_MEDIA_TYPE'],
    ['a form', ['Content-Type: application/x-www-form-urlencoded'], 'UNSUPPORTED_MEDIA_TYPE'],
    ['no type', [], 'UNSUPPORTED_MEDIA_TYPE'],
    ['a type that is none', ['Content-Type: ;;;'], 'UNSUPPORTED_MEDIA_TYPE'],
    ['compressed', ['Content-Type: application/json', 'Content-Encoding: gzip'], 'UNSUPPORTED_MEDIA_TYPE'],
  ] as const)('a body that is %s is refused', async (_what, headers, code) => {
    expectRefused(await ask(served.url, post('{"engine":"codex","prompt":"x"}', headers)), code);
  });

  test('two lengths, a length and chunks, and chunks that are none are refused', async () => {
    for (const headers of [
      ['Content-Length: 2', 'Content-Length: 3'],
      ['Content-Length: 2', 'Transfer-Encoding: chunked'],
      ['Transfer-Encoding: chunked, nonsense'],
      ['Content-Length: -1'],
      ['Content-Length: 1x'],
    ]) {
      expectRefused(await ask(served.url, line('POST /v1/runs', ['Content-Type: application/json', ...headers], '{}')));
    }
    expectRefused(
      await ask(
        served.url,
        line('POST /v1/runs', ['Content-Type: application/json', 'Transfer-Encoding: chunked'], 'zz\r\n{}\r\n'),
      ),
    );
  });

  test('a client that goes away in the middle of its body is no defect of ours', async () => {
    const socket = open(served.url);
    socket.write(line('POST /v1/runs', ['Content-Type: application/json', 'Content-Length: 1000'], '{"engine"'), () =>
      socket.resetAndDestroy(),
    );
    await once(socket, 'close');
  });
});

describe('heads', () => {
  test('thousands of headers and a huge one are refused', async () => {
    expectRefused(
      await ask(
        served.url,
        line(
          'GET /v1/runs',
          Array.from({ length: 5000 }, (_, index) => `X-${index}: 1`),
        ),
      ),
      'HEADERS_TOO_LARGE',
    );
    expectRefused(await ask(served.url, line('GET /v1/runs', [`X-Huge: ${'a'.repeat(MB)}`])), 'HEADERS_TOO_LARGE');
    expectRefused(await ask(served.url, line(`GET /v1/runs?label=${'a'.repeat(MB)}`)), 'HEADERS_TOO_LARGE');
  });

  test('many small headers, which Node would drop silently, are refused', async () => {
    expectRefused(
      await ask(
        served.url,
        line(
          'GET /v1/runs',
          Array.from({ length: 2500 }, () => 'a:b'),
        ),
      ),
      'HEADERS_TOO_LARGE',
    );
  });

  test.each([
    ['a line break in a key', 'Idempotency-Key: a\nX-Evil: 1'],
    ['a bare return in a key', 'Idempotency-Key: a\rX-Evil: 1'],
    ['NUL in a key', 'Idempotency-Key: a\0b'],
    ['a folded key', 'Idempotency-Key: a\r\n b'],
    ['a space before the colon', 'Idempotency-Key : a'],
    ['a name with a break', 'X\r-Evil: 1'],
    ['no colon', 'nonsense'],
    ['a break in a cursor', 'Last-Event-ID: 1\nX-Evil: 1'],
    ['an expectation', 'Expect: the-moon'],
  ])('%s is refused', async (_what, header) => {
    const answer = await ask(served.url, line(`GET /v1/runs/${runId}/events`, [header]));
    expectRefused(answer);
    expect(answer.head).not.toMatch(/evil/i);
  });

  test.each(['-1', '1e3', '0x1', '9'.repeat(400), 'a', '1, 2', ' ١'])(
    'the cursor %s in a header is refused',
    async (cursor) => {
      expectRefused(
        await ask(
          served.url,
          Buffer.from(line(`GET /v1/runs/${runId}/events`, [`Last-Event-ID: ${cursor}`])).toString('latin1'),
        ),
        'INVALID_ARGUMENT',
      );
    },
  );

  test('nothing that a client names comes back as a header of its own', async () => {
    const evil = 'x\r\nSet-Cookie: a=b\r\n\r\n<script>';
    const made = await served.fetch('/v1/runs', {
      method: 'POST',
      body: JSON.stringify({
        engine: 'codex',
        prompt: '[[answer x]]',
        labels: { [evil]: evil },
        request_id: evil,
        model: evil,
      }),
    });
    expect(made.headers.get('set-cookie')).toBeNull();
    if (made.ok) await served.bench.orchestrator.waitUntilIdle(((await made.json()) as { run_id: string }).run_id);
    else await refused(made);
    for (const path of [
      `/${encodeURIComponent(evil)}`,
      `/v1/runs/${runId}/files/content?path=${encodeURIComponent(evil)}`,
    ]) {
      const answer = await served.fetch(path);
      expect(answer.headers.get('set-cookie')).toBeNull();
      await refused(answer);
    }
  });

  test('a request that is none, of another protocol, or for a tunnel is refused', async () => {
    for (const text of [
      'nonsense\r\n\r\n',
      '\x16\x03\x01\x02\x00\x01\x00\x01',
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'GET /v1/runs\r\n\r\n',
      `NONSENSE / HTTP/1.1\r\nHost: ${host}\r\n\r\n`,
      `GET / HTTP/9.9\r\nHost: ${host}\r\n\r\n`,
    ])
      expectRefused(await ask(served.url, text));
    expect(await exchange(served.url, `CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: ${host}\r\n\r\n`)).not.toContain(' 200 ');
    for (const request of [
      'GET http://example.com/v1/runs',
      'GET *',
      'OPTIONS *',
      'GET //v1/runs',
      'GET /%',
      'GET /%zz',
      'GET /%ff',
      'PROPFIND /v1/runs',
      'TRACE /v1/runs',
      `GET /v1/runs/${'a'.repeat(600)}`,
    ])
      expectRefused(await ask(served.url, line(request)));
    expectRefused(
      await ask(
        served.url,
        line('GET /v1/runs', ['Connection: Upgrade', 'Upgrade: websocket'])
          .replace('Connection: close\r\n', 'Connection: close, Upgrade\r\n')
          .replace('/v1/runs', '/none'),
      ),
      'NOT_FOUND',
    );
  });

  test('HTTP/1.0 and requests in a row are answered in their order', async () => {
    expect(answersIn(await exchange(served.url, `GET /healthz HTTP/1.0\r\nHost: ${host}\r\n\r\n`))).toMatchObject([
      { status: 200 },
    ]);
    expectRefused(await ask(served.url, 'GET /healthz HTTP/1.0\r\n\r\n'), 'HOST_NOT_ALLOWED');
    const open = (path: string) => keptOpen(line(`GET ${path}`));
    const answers = answersIn(
      await exchange(
        served.url,
        [open('/healthz'), open('/none'), open(`/v1/runs/${runId}/result`), post('{'), line('GET /healthz')].join(''),
      ),
    );
    // The data after an unreadable body is not read either.
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 200, 400]);
  });
});

describe('places', () => {
  const WAYS = [
    '..',
    '%2e%2e',
    '..%2f..',
    '%2e%2e%2f%2e%2e%2fetc%2fpasswd',
    '%252e%252e%252f',
    '..%5c..',
    '%5c%5chost%5cshare',
    '%00',
    `%00${'a'.repeat(30)}`,
    '.',
    '%2fetc%2fpasswd',
    '~',
    '*',
    '%e2%80%ae',
    `run_${'0'.repeat(26)}`,
    `run_${'0'.repeat(25)}%00`,
    `run_${'0'.repeat(26)}%0a`,
  ];

  test('no id of a run leads anywhere else, on any route', async () => {
    const routes = (await served.routes()).filter(([, path]) => path.includes('{id}'));
    expect(routes.length).toBeGreaterThan(12);
    for (const [method, path] of routes)
      for (const attack of WAYS) {
        const body = method === 'POST' ? '{"prompt":"x","interaction_id":"x"}' : '';
        const answer = await ask(
          served.url,
          line(
            `${method} ${path.replace('{id}', attack)}`,
            body ? ['Content-Type: application/json', `Content-Length: ${body.length}`] : [],
            body,
          ),
        );
        expectRefused(answer);
        expect([400, 404, 405], `${method} ${path} ${attack}`).toContain(answer.status);
      }
  });

  test('no path of a file leads out of the run', async () => {
    for (const attack of [
      ...WAYS,
      '..%2f..%2ftoken',
      'workspace%2f..%2f..%2f..%2ftoken',
      '%252e%252e%2f%252e%252e%2ftoken',
      '..\\..\\token',
      'C:\\x',
      'file:%2f%2f%2fetc%2fpasswd',
      'a'.repeat(5000),
      '',
      '%2f',
      '..%2f',
    ]) {
      const answer = await ask(served.url, line(`GET /v1/runs/${runId}/files/content?path=${attack}`));
      expectRefused(answer);
    }
  });

  test('no folder leads out of the roots', async () => {
    const allowed = join(served.root, 'allowed');
    for (const cwd of [
      '/',
      '/etc',
      '..',
      '.',
      '',
      '~',
      `${allowed}/..`,
      `${allowed}/project/../..`,
      `${allowed}/../data`,
      `${allowed}/%2e%2e`,
      `${allowed}/\0`,
      `${allowed}\\..`,
      `${allowed}/project\n`,
      'file:///etc',
      `${allowed}/${'a/'.repeat(5000)}`,
    ]) {
      await refused(
        served.fetch('/v1/runs', { method: 'POST', body: JSON.stringify({ engine: 'codex', prompt: 'x', cwd }) }),
      );
    }
  });

  test('a query is taken once and as it is declared', async () => {
    for (const path of [
      `/v1/runs?limit=1&limit=2`,
      `/v1/runs?nothing=1`,
      '/v1/runs?limit[]=1',
      '/v1/runs?__proto__=1',
      '/v1/runs?status=none',
      '/v1/runs?limit=0',
      '/v1/runs?limit=501',
      '/v1/runs?limit=NaN',
      '/v1/runs?label=x',
      `/v1/runs/${runId}/events?cursor=1&cursor=2`,
      `/v1/runs/${runId}/files/content?path=a&path=b`,
      `/v1/runs/${runId}/logs?stream=stdout&stream=stderr`,
      `/v1/runs/${runId}/rasp/history?from_seq=1&from_seq=2`,
      '/v1/interactions?overdue=maybe',
      '/v1/interactions?cursor=x&cursor=y',
    ])
      await refused(served.fetch(path), 'INVALID_ARGUMENT');
  });
});

describe('answers', () => {
  test('guessed ids, answers of another run, replayed and reordered ones change nothing', async () => {
    const [one, two] = [await waiting(), await waiting()];
    const first = await served.client.interaction(one);
    const other = await served.client.interaction(two);
    const reply = (id: string, body: object) =>
      served.fetch(`/v1/runs/${id}/interaction/reply`, { method: 'POST', body: JSON.stringify(body) });
    await refused(reply(one, { interaction_id: other.interaction_id, response: 'a' }), 'INTERACTION_NOT_FOUND');
    await refused(reply(one, { interaction_id: `int_${'0'.repeat(26)}`, response: 'a' }), 'INTERACTION_NOT_FOUND');
    await refused(
      reply(`run_${'0'.repeat(26)}`, { interaction_id: first.interaction_id, response: 'a' }),
      'RUN_NOT_FOUND',
    );
    const good = { interaction_id: first.interaction_id, response: ASK, idempotency_key: 'k' };
    expect((await reply(one, good)).status).toBe(200);
    await served.bench.orchestrator.waitUntilIdle(one);
    const second = await served.client.interaction(one);
    // Replayed: the identical request is recognised, with another key or answer it is too late; the new question stays.
    expect((await reply(one, good)).status).toBe(200);
    for (const late of [
      { ...good, idempotency_key: 'other' },
      { ...good, response: 'b' },
      { interaction_id: first.interaction_id, response: ASK },
    ]) {
      const answer = await reply(one, late);
      expect(answer.status).toBe(409);
      await refused(answer);
    }
    expect(await served.client.interaction(one)).toEqual(second);
    for (const id of [one, two]) await served.client.cancel(id);
  });
});

describe('unauthenticated callers', () => {
  const PAGES = [
    ['GET', '/'],
    ['GET', '/docs'],
    ['GET', '/metrics'],
    ['GET', '/openapi.json'],
    ['GET', '/none'],
    ['POST', '/v1/none'],
  ] as const;

  test('without a token, or with one that is not known, nothing but health answers, whatever the method', async () => {
    for (const [method, path] of [...(await served.routes()), ...PAGES]) {
      if (path === '/healthz' || path === '/readyz' || path === '/v1/sign-in') continue;
      for (const each of [method, 'HEAD', 'OPTIONS', 'PUT', 'PATCH'])
        for (const as of [null, 'wrong', `${served.token}x`, served.token.slice(0, -1), served.token.toUpperCase()]) {
          const answer = await served.fetch(path.replace('{id}', runId), { method: each, as });
          expect(answer.status, `${each} ${path}`).toBe(401);
          if (each !== 'HEAD') await refused(answer, 'UNAUTHORIZED');
        }
    }
    // Browsers: a session that never existed, one that has ended, and the cookie of the previous version.
    const ended = await served.signIn();
    await served.fetch('/v1/sign-out', { method: 'POST', as: null, headers: { cookie: ended, origin: served.url } });
    const [name = ''] = ended.split('=');
    const old = createHmac('sha256', createHash('sha256').update(served.token).digest()).update(
      'parley browser session',
    );
    const cookies = [
      ended,
      `${name}=prs_${'x'.repeat(43)}`,
      `${name}=${old.digest('base64url')}`,
      `${name}=${served.token}`,
    ];
    for (const [method, path] of [...(await served.routes()), ...PAGES]) {
      if (path === '/healthz' || path === '/readyz' || path === '/v1/sign-in') continue;
      for (const cookie of cookies) {
        const headers = { cookie, origin: served.url };
        await refused(served.fetch(path.replace('{id}', runId), { method, as: null, headers }), 'UNAUTHORIZED');
      }
    }
    for (const authorization of [
      'Basic x',
      `Basic ${served.token}`,
      served.token,
      `Bearer ${served.token} x`,
      'Bearer',
      `bearer: ${served.token}`,
      `Bearer ${'x'.repeat(10_000)}`,
    ])
      await refused(served.fetch('/v1/me', { as: null, headers: { authorization } }), 'UNAUTHORIZED');
    for (const path of ['/v1/me?token=', '/?token='])
      await refused(served.fetch(`${path}${served.token}`, { as: null }), 'UNAUTHORIZED');
    for (const path of ['/sign-in?token=', '/v1/sign-in?token='])
      await refused(served.fetch(`${path}${served.token}`, { as: null }), 'UNAUTHORIZED');
  });

  test('each role has exactly its permissions, on every route', async () => {
    const [viewer, replier] = [served.tokenOf('viewer'), served.tokenOf('replier')];
    for (const [method, path] of await served.routes()) {
      // Everybody may sign in and out and manage their own sessions.
      if (method === 'GET' || path === '/v1/sign-in' || path === '/v1/sign-out' || path === '/v1/sessions/{id}')
        continue;
      const mayReply = path.endsWith('/reply');
      for (const [as, may] of [
        [viewer, false],
        [replier, mayReply],
      ] as const) {
        const answer = await served.fetch(path.replace('{id}', `run_${'0'.repeat(26)}`), { method, as, body: '{}' });
        expect(answer.status === 403, `${method} ${path}`).toBe(!may);
        await refused(answer);
      }
    }
    for (const [, path] of (await served.routes()).filter(
      ([method, each]) =>
        method === 'GET' &&
        !each.includes('{id}') &&
        !each.endsWith('/events') &&
        each !== '/v1/changes' &&
        each !== '/v1/audit',
    ))
      expect((await served.fetch(path, { as: viewer })).status, path).toBe(200);
  });

  test('a HEAD opens no stream', async () => {
    for (const path of [
      `/v1/runs/${runId}/events`,
      `/v1/runs/${runId}/rasp`,
      '/v1/interactions/events',
      '/v1/changes',
    ]) {
      const text = await exchange(served.url, line(`HEAD ${path}`));
      expect(text).toMatch(/^HTTP\/1\.1 405 /);
    }
    expect(watched()).toBe(0);
  });

  test('other hosts, other ports and pages of others are refused, also with the right token', async () => {
    const port = Number(new URL(served.url).port);
    for (const name of [
      'example.com',
      `example.com:${port}`,
      `127.0.0.1:${port + 1}`,
      '127.0.0.1',
      'localhost',
      '',
      `127.0.0.1:${port}.example.com`,
      `0.0.0.0:${port}`,
      `127.0.0.1:${port}@example.com`,
      `[::ffff:127.0.0.1]:${port}`,
    ]) {
      expectRefused(await ask(served.url, line('GET /v1/runs').replace(`Host: ${host}`, `Host: ${name}`)));
    }
    expectRefused(await ask(served.url, line('GET /v1/runs').replace(`Host: ${host}\r\n`, '')), 'HOST_NOT_ALLOWED');
    for (const origin of [
      'null',
      'http://example.com',
      `http://example.com:${port}`,
      `http://127.0.0.1:${port + 1}`,
      'file://',
      'nonsense',
      '',
      `http://127.0.0.1:${port}.example.com`,
    ]) {
      expectRefused(await ask(served.url, line('GET /v1/runs', [`Origin: ${origin}`])), 'ORIGIN_NOT_ALLOWED');
      expectRefused(
        await ask(
          served.url,
          line('POST /v1/runs', [`Origin: ${origin}`, 'Content-Type: application/json', 'Content-Length: 2'], '{}'),
        ),
        'ORIGIN_NOT_ALLOWED',
      );
    }
    const health = await served.fetch('/healthz', { headers: { origin: 'http://example.com' } });
    expect([health.status, health.headers.get('access-control-allow-origin')]).toEqual([403, null]);
  });

  test('a cookie alone changes nothing, and only under its own name is it one', async () => {
    const cookie = await served.signIn();
    const as = (path: string, method: string, headers: Record<string, string>) =>
      served.fetch(path, { as: null, method, headers });
    expect((await as('/v1/me', 'GET', { cookie })).status).toBe(200);
    await refused(as('/v1/runs', 'POST', { cookie }), 'ORIGIN_NOT_ALLOWED');
    await refused(as(`/v1/runs/${runId}`, 'DELETE', { cookie }), 'ORIGIN_NOT_ALLOWED');
    await refused(as('/v1/runs', 'POST', { cookie, origin: 'http://example.com' }), 'ORIGIN_NOT_ALLOWED');
    for (const wrong of [
      `token=${served.token}`,
      `parley_000000000000=${served.token}`,
      cookie.split('=')[0] ?? '',
      `x${cookie}`,
    ])
      await refused(as('/v1/me', 'GET', { cookie: wrong }), 'UNAUTHORIZED');
  });

  test('a removed token is refused from the next request on; its open stream ends with the next frame', async () => {
    const token = addToken(served.bench.data.path, 'gone soon', { role: 'viewer', now: '2026-01-01T00:00:00.000Z' });
    const id = await waiting();
    const stream = await served.fetch(`/v1/runs/${id}/events`, { as: token });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('user.input.required')) text += (await reader?.read())?.value ?? '';
    removeToken(served.bench.data.path, 'gone soon');
    await refused(served.fetch('/v1/me', { as: token }), 'UNAUTHORIZED');
    const { interaction_id: interaction } = await served.client.interaction(id);
    await served.client.reply(id, { interaction_id: interaction, response: '[[answer A secret.]]' });
    let after = '';
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) after += part.value;
    expect(after).not.toContain('secret');
    expect(after).not.toContain('event: end');
    await served.bench.orchestrator.waitUntilIdle(id);
    await served.client.cancel(id);
  });
});

describe('slowness', () => {
  test('heads and bodies that trickle in are refused after a while, others are served meanwhile', async () => {
    const slow = await serve({ limits: { ...DEFAULT_LIMITS, requestMs: 2000 } });
    try {
      const there = new URL(slow.url).host;
      const head =
        `POST /v1/runs HTTP/1.1\r\nHost: ${there}\r\nAuthorization: Bearer ` +
        `${slow.token}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n`;
      const pending = [
        ...Array.from({ length: 20 }, () => ask(slow.url, head)),
        ...Array.from({ length: 20 }, () => ask(slow.url, `${head}\r\n{"engine"`)),
        ask(slow.url, 'G'),
      ];
      for (let count = 0; count < 10; count += 1) expect((await slow.client.list()).runs).toEqual([]);
      for (const answer of await Promise.all(pending)) expectRefused(answer, 'REQUEST_TIMEOUT');
      expect(slow.logged.join('')).not.toMatch(/"level":[56]0|INTERNAL/);
      expect((await slow.client.list()).runs).toEqual([]);
    } finally {
      await slow.close();
    }
  });

  test('a stream whose request never ends is closed, not mixed with a refusal', async () => {
    const slow = await serve({ limits: { ...DEFAULT_LIMITS, requestMs: 2000 } });
    try {
      const there = new URL(slow.url).host;
      const text = await exchange(
        slow.url,
        `GET /v1/interactions/events HTTP/1.1\r\nHost: ${there}\r\nAuthorization: Bearer ` +
          `${slow.token}\r\nContent-Length: 100\r\n\r\n`,
      );
      expect(text.match(/HTTP\/1\.1 /g)).toHaveLength(1);
    } finally {
      await slow.close();
    }
  });

  test('readers that never read hold up nobody and leave nothing behind', async () => {
    const { run_id: id } = await served.client.create({ engine: 'codex', prompt: '[[events 5000 1000]]' });
    const sockets = Array.from({ length: 50 }, () => {
      const socket = open(served.url).pause();
      socket.write(line(`GET /v1/runs/${id}/rasp`));
      return socket;
    });
    let seen = 0;
    for await (const event of served.client.rasp(id)) seen = event.seq;
    const run = await served.bench.orchestrator.waitUntilIdle(id);
    expect([run.status, seen]).toEqual(['succeeded', run.heads.rasp_seq]);
    for (const socket of sockets) socket.destroy();
    await until(() => watched() === 0);
    // A stream ends in a later event-loop tick.
    await expect.poll(async () => (await served.fetch('/metrics')).text()).toMatch(/^parley_streams 0$/m);
  });

  test('more streams than are served are refused, and one that ends makes room', async () => {
    const few = await serve({ limits: { ...DEFAULT_LIMITS, streams: 2, streamsPerToken: 2 } });
    try {
      const leave = new AbortController();
      const path = '/v1/interactions/events';
      await Promise.all([few.fetch(path, { signal: leave.signal }), few.fetch(path, { signal: leave.signal })]);
      await refused(few.fetch(path), 'TOO_MANY_STREAMS');
      leave.abort();
      await expect
        .poll(async () => (await few.fetch('/metrics')).text(), { timeout: 30_000 })
        .toMatch(/^parley_streams 0$/m);
    } finally {
      await few.close();
    }
  });
});
