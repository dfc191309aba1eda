// Responses that their clients do not read are limited in bytes, for each token and in all.
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ask, change, newRun } from '../../store/conformance.js';
import { open } from '../../support/raw-http.js';
import { serve, type Served } from '../../support/served.js';

const LARGE = `run_${'1'.padStart(26, '0')}`;
const SMALL = `run_${'2'.padStart(26, '0')}`;
const TEXT = 'x'.repeat(9_800_000);

let served: Served;
const sockets: Socket[] = [];
beforeEach(async () => {
  served = await serve({ bench: { settings: { runsTurns: false } } });
  const { store } = served.bench.data;
  for (const [id, prompt] of [
    [LARGE, TEXT],
    [SMALL, 'x'],
  ] as const) {
    const outcome = await store.createRun(
      newRun(1, { run_id: id, request_id: id, spec: { ...newRun(1).spec, prompt } }),
    );
    if (!outcome.created) throw new Error(outcome.reason);
    await store.append(
      change(outcome.run, {
        set: { status: 'waiting_user' },
        ask: ask(id.replace('run_', 'int_'), { question: { kind: 'open_text', prompt, options: [] } as never }),
      }),
    );
  }
});
afterEach(async () => {
  closeAll();
  await served.close();
});

function closeAll(): void {
  for (const socket of sockets.splice(0)) socket.destroy();
}

function requestWithoutReading(path: string, token: string, times = 1): void {
  const socket = open(served.url).pause();
  sockets.push(socket);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: ${new URL(served.url).host}\r\nAuthorization: Bearer ${token}\r\n\r\n`.repeat(times),
  );
}

async function statusOf(path: string, as: string): Promise<number> {
  const response = await served.fetch(path, { as });
  await response.arrayBuffer();
  return response.status;
}

test.each(['', '/interaction'])(
  'a token whose clients read nothing of /v1/runs/ID%s is refused after a few, others are served',
  async (part) => {
    const [hostile, other] = [served.tokenOf('viewer'), served.tokenOf('viewer')];
    const path = `/v1/runs/${LARGE}${part}`;
    for (let count = 0; count < 40; count += 1) requestWithoutReading(path, hostile);
    const refused = () => served.logged.filter((line) => line.includes('"status":429')).length;
    await expect.poll(refused).toBeGreaterThanOrEqual(36);
    const response = await served.fetch(path, { as: hostile });
    expect([
      response.status,
      response.headers.get('retry-after'),
      ((await response.json()) as { error: { code: string } }).error.code,
    ]).toEqual([429, '1', 'TOO_MANY_REQUESTS']);
    expect([
      await statusOf('/healthz', other),
      await statusOf(`/v1/runs/${SMALL}`, other),
      await statusOf(path, other),
    ]).toEqual([200, 200, 200]);
    closeAll();
    await expect.poll(() => statusOf(path, hostile)).toBe(200);
  },
);

test('pipelined requests of one connection load only a few runs, and are released when it is closed', async () => {
  const viewer = served.tokenOf('viewer');
  const path = `/v1/runs/${LARGE}`;
  const loading = vi.spyOn(served.bench.data.store, 'salvageRun');
  // Several times: any bytes that stayed counted would fill the limit.
  for (let round = 0; round < 3; round += 1) {
    requestWithoutReading(path, viewer, 20);
    await Promise.all(sockets.map((socket) => once(socket, 'readable')));
    await expect.poll(() => statusOf(path, viewer)).toBe(429);
    expect(loading.mock.calls.length).toBeLessThanOrEqual(5);
    closeAll();
    await expect.poll(() => statusOf(path, viewer)).toBe(200);
    loading.mockClear();
  }
});

test('many small reads at once, and large ones one after the other, are not limited', async () => {
  const viewer = served.tokenOf('viewer');
  const statuses = await Promise.all(Array.from({ length: 300 }, () => statusOf(`/v1/runs/${SMALL}`, viewer)));
  expect(new Set(statuses)).toEqual(new Set([200]));
  for (let count = 0; count < 6; count += 1) expect(await statusOf(`/v1/runs/${LARGE}`, viewer)).toBe(200);
});

test('many tokens together are limited to the total, small responses are not', async () => {
  const path = `/v1/runs/${LARGE}`;
  const tokens = Array.from({ length: 6 }, () => served.tokenOf('viewer'));
  for (const token of tokens) for (let count = 0; count < 3; count += 1) requestWithoutReading(path, token);
  const other = served.tokenOf('viewer');
  await expect.poll(() => statusOf(path, other)).toBe(429);
  expect(await statusOf(`/v1/runs/${SMALL}`, other)).toBe(200);
});

test('a change that was made is reported although its token has unread responses', async () => {
  const operator = served.tokenOf('operator');
  for (let count = 0; count < 3; count += 1) requestWithoutReading(`/v1/runs/${LARGE}`, operator);
  // Each has been written, and stays unread except for its beginning.
  await Promise.all(sockets.map((socket) => once(socket, 'readable')));
  const response = await served.fetch(`/v1/runs/${LARGE}/cancel`, { method: 'POST', as: operator });
  expect(response.status).toBe(200);
  expect(((await response.json()) as { status: string }).status).toBe('canceled');
});
