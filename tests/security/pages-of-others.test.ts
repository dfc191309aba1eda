// A foreign page in the browser of a signed-in person, especially one on another port of the same machine, as an agent
// may serve it: the browser sends it the cookies of the host, and treats it as the same site.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answersIn, exchange, expectRefused } from '../support/raw-http.js';
import { serve, type Served } from '../support/served.js';

let served: Served;
let cookie: string;
let runId: string;
beforeAll(async () => {
  const consoleDir = join(import.meta.dirname, '../../dist/program/console');
  served = await serve({ consoleDir });
  cookie = (await signIn(served.url)).headers.get('set-cookie') ?? '';
  ({ run_id: runId } = await served.client.create({ engine: 'codex', prompt: '[[answer x]]' }));
  await served.bench.orchestrator.waitUntilIdle(runId);
  mkdirSync(join(served.bench.data.path, 'runs', runId, 'workspace'), { recursive: true });
  writeFileSync(join(served.bench.data.path, 'runs', runId, 'workspace', 'page.html'), '<script>alert(1)</script>');
});
afterAll(() => served.close());

const signIn = (origin: string) =>
  served.fetch('/v1/sign-in', {
    method: 'POST',
    as: null,
    headers: { origin },
    body: JSON.stringify({ token: served.token }),
  });

// As a browser sends it; fetch sets its own values for these headers.
const loaded = (path: string, { site, mode, dest }: { site: string; mode?: string; dest?: string }) =>
  exchange(
    served.url,
    [
      `GET ${path} HTTP/1.1`,
      `Host: ${new URL(served.url).host}`,
      `Cookie: ${cookie.split(';')[0]}`,
      `Sec-Fetch-Site: ${site}`,
      ...(mode ? [`Sec-Fetch-Mode: ${mode}`, `Sec-Fetch-Dest: ${dest}`] : []),
      'Connection: close',
      '',
      '',
    ].join('\r\n'),
  );

test('loads, frames and requests of other pages are refused despite the cookie; a followed link is not', async () => {
  for (const path of [
    '/v1/runs',
    `/v1/runs/${runId}/archive`,
    `/v1/runs/${runId}/events`,
    '/v1/changes',
    '/metrics',
    '/docs',
  ]) {
    for (const site of ['same-site', 'cross-site'])
      for (const [mode, dest] of [
        ['no-cors', 'image'],
        ['no-cors', 'script'],
        ['navigate', 'iframe'],
        ['navigate', 'object'],
        ['cors', 'empty'],
        ['', ''],
      ] as const) {
        expectRefused(
          answersIn(await loaded(path, { site, mode, dest }))[0] ?? { status: 0, body: '' },
          'ORIGIN_NOT_ALLOWED',
        );
      }
  }
  const page = { mode: 'navigate', dest: 'document' };
  for (const asked of [
    { site: 'same-origin', mode: 'cors', dest: 'empty' },
    { site: 'none', ...page },
    { site: 'cross-site', ...page },
    { site: 'same-site', ...page },
  ]) {
    for (const path of ['/v1/runs', '/'])
      expect(await loaded(path, asked), JSON.stringify(asked)).toMatch(/^HTTP\/1\.1 200 /);
  }
});

test('the cookie is for no script, for no other site, and not the token', () => {
  expect(cookie).toMatch(/; HttpOnly; SameSite=Lax/);
  expect(cookie).not.toContain(served.token);
});

test('no response can be framed, sniffed, cached or read by another page, or load or run anything', async () => {
  const stream = await served.fetch(`/v1/runs/${runId}/events`);
  await stream.body?.cancel();
  expect([
    stream.headers.get('cross-origin-resource-policy'),
    stream.headers.get('cache-control'),
    stream.headers.get('x-content-type-options'),
  ]).toEqual(['same-origin', 'no-store', 'nosniff']);
  const paths = [
    '/',
    '/inbox',
    '/docs',
    '/openapi.json',
    '/metrics',
    '/healthz',
    '/none',
    '/v1/runs',
    `/v1/runs/${runId}/archive`,
    `/v1/runs/${runId}/logs`,
    `/v1/runs/${runId}/files/content?path=workspace/page.html`,
    '/sign-in',
  ];
  for (const path of paths)
    for (const accept of ['application/json', 'text/html']) {
      const { headers, body } = await served.fetch(path, { headers: { accept } });
      await body?.cancel();
      const policy = headers.get('content-security-policy') ?? '';
      expect(policy, path).toContain("default-src 'none'");
      expect(policy, path).toContain("frame-ancestors 'none'");
      expect(policy, path).not.toMatch(/script-src[^;]*(?:unsafe|\*|https?:|data:)/);
      expect(headers.get('access-control-allow-origin'), path).toBeNull();
      expect(headers.get('referrer-policy'), path).toBe('no-referrer');
      expect(headers.get('x-frame-options'), path).toBe('DENY');
      expect(headers.get('x-content-type-options'), path).toBe('nosniff');
      expect(headers.get('cross-origin-resource-policy'), path).toBe('same-origin');
      expect(headers.get('cross-origin-opener-policy'), path).toBe('same-origin');
      expect(headers.get('cache-control'), path).toMatch(/^no-(?:store|cache)$/);
    }
});

test('a file that an agent made is handed out as bytes to be kept, never as a page', async () => {
  const { headers } = await served.fetch(`/v1/runs/${runId}/files/content?path=workspace/page.html`, {
    headers: { accept: 'text/html' },
  });
  expect(headers.get('content-type')).toBe('application/octet-stream');
  expect(headers.get('content-disposition')).toBe('attachment; filename="page.html"');
});

test('a name that only Parley has keeps its cookie from what else is served on this machine', async () => {
  const { port } = new URL(served.url);
  served.hosts.add(`parley.localhost:${port}`);
  const body = JSON.stringify({ token: served.token });
  const answer = await exchange(
    served.url,
    `POST /v1/sign-in HTTP/1.1\r\nHost: parley.localhost:${port}\r\nOrigin: ` +
      `http://parley.localhost:${port}\r\nContent-Type: application/json\r\nContent-Length: ` +
      `${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  // Without Domain a cookie belongs to exactly that name.
  expect(answer).toMatch(/^set-cookie: /im);
  expect(answer).not.toMatch(/domain=/i);
});
