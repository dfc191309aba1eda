// Headers in which a proxy reports the client, the host and the scheme: any client can write them, so none of them
// counts.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { answersIn, exchange, expectRefused, type RawAnswer } from '../support/raw-http.js';
import { serve, type Served } from '../support/served.js';

let served: Served;
let host: string;
beforeAll(async () => {
  served = await serve();
  ({ host } = new URL(served.url));
});
afterAll(() => served.close());

// As if it came from this machine, over TLS, for this name, from a user whom the proxy knows.
const headersOf = (name: string): string[] => [
  'X-Forwarded-For: 127.0.0.1',
  'X-Real-IP: 127.0.0.1',
  'X-Client-IP: 127.0.0.1',
  'CF-Connecting-IP: 127.0.0.1',
  `Forwarded: for=127.0.0.1;host=${name};proto=https;by=127.0.0.1`,
  `X-Forwarded-Host: ${name}`,
  `X-Forwarded-Server: ${name}`,
  `X-Original-Host: ${name}`,
  'X-Forwarded-Proto: https',
  'X-Forwarded-Port: 443',
  'X-Forwarded-Prefix: /admin',
  'X-Forwarded-User: ann',
  'X-Remote-User: ann',
  'Remote-User: ann',
  'X-Auth-Request-User: ann',
  'X-Forwarded-Access-Token: x',
];

async function ask(first: string, name: string, headers: readonly string[], body = ''): Promise<RawAnswer> {
  const length = body === '' ? [] : ['Content-Type: application/json', `Content-Length: ${body.length}`];
  return (
    answersIn(
      await exchange(
        served.url,
        [`${first} HTTP/1.1`, `Host: ${name}`, ...headers, ...length, 'Connection: close', '', body].join('\r\n'),
      ),
    )[0] ?? { status: 0, head: '', body: '' }
  );
}

test('proxy headers identify nobody: without a token nothing answers; a foreign host or page is refused', async () => {
  for (const first of ['GET /v1/runs', 'GET /metrics', 'POST /v1/runs'])
    expectRefused(await ask(first, host, headersOf(host)), 'UNAUTHORIZED');
  const signed = `Authorization: Bearer ${served.token}`;
  expectRefused(await ask('GET /v1/runs', 'evil.example', [signed, ...headersOf(host)]), 'HOST_NOT_ALLOWED');
  expectRefused(
    await ask('GET /v1/runs', host, [signed, 'Origin: https://evil.example', ...headersOf('evil.example')]),
    'ORIGIN_NOT_ALLOWED',
  );
  // And they do not restrict permitted callers.
  expect((await ask('GET /v1/runs', host, [signed, ...headersOf('evil.example')])).status).toBe(200);
});

test('headers of a proxy change neither the method nor the path nor whose deed it is', async () => {
  const { run_id: id } = await served.client.create({ engine: 'codex', prompt: '[[answer x]]' });
  await served.bench.orchestrator.waitUntilIdle(id);
  const viewer = `Authorization: Bearer ${served.tokenOf('viewer')}`;
  const others = [
    'X-HTTP-Method-Override: DELETE',
    'X-HTTP-Method: DELETE',
    'X-Method-Override: DELETE',
    `X-Original-URL: /v1/runs/${id}`,
    `X-Rewrite-URL: /v1/runs/${id}`,
  ];
  for (const signed of [viewer, `Authorization: Bearer ${served.token}`])
    expect(
      JSON.parse((await ask(`GET /v1/runs/${id}`, host, [signed, ...others, ...headersOf(host)])).body),
    ).toMatchObject({ run_id: id });
  expectRefused(
    await ask(`DELETE /v1/runs/${id}`, host, [viewer, 'X-HTTP-Method-Override: GET', ...headersOf(host)]),
    'FORBIDDEN',
  );
  expect((await served.client.get(id)).status).toBe('succeeded');
  // The token determines who started it.
  const created = await ask(
    'POST /v1/runs',
    host,
    [`Authorization: Bearer ${served.token}`, ...headersOf(host).map((line) => line.replace(/: ann$/, ': mallory'))],
    JSON.stringify({ engine: 'codex', prompt: '[[answer y]]' }),
  );
  expect(created.status).toBe(201);
  const { run_id: second } = JSON.parse(created.body) as { run_id: string };
  await served.bench.orchestrator.waitUntilIdle(second);
  const [first = ''] = await served.bench.data.store.readJournal(second, 'rasp', { limit: 1 });
  expect(JSON.parse(first)).toMatchObject({ data: { actor: { name: 'ann' } } });
  expect(first).not.toContain('mallory');
  // They determine no address in the response.
  expect(created.head).not.toMatch(/https:|evil|\/admin/i);
});
