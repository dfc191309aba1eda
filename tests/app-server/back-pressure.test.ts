// A running turn and its server: the server is not read faster than the turn handles its lines, and other readers and
// a close are not affected.
import { statSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import type { LaunchedServer } from '../../src/app-server/codex-app-server.js';
import { PACE_BYTES } from '../../src/process/line-feed.js';
import { openFakeDesk } from './fake-desk.js';

const FLOOD = 20_000;
// The capacity of a pipe and one read of it.
const SLACK_BYTES = 512 * 1024;

const openServer = async (): Promise<LaunchedServer> => (await openFakeDesk().open()) as LaunchedServer;
const sizeOf = (server: LaunchedServer): number => statSync(server.recording.events).size;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function untilStill(server: LaunchedServer): Promise<number> {
  let before = -1;
  for (let size = sizeOf(server); size !== before; size = sizeOf(server)) {
    before = size;
    await pause(100);
  }
  return before;
}

test('the server is not read while a turn is far behind, and is read again when the turn continues', async () => {
  const server = await openServer();
  const lines = server.feed.read({ paces: true });
  const first = lines.next();
  const flood = server.request('test/flood', { count: FLOOD });
  await first;
  await vi.waitFor(() => expect(sizeOf(server)).toBeGreaterThan(PACE_BYTES), { timeout: 10_000 });
  expect(await untilStill(server)).toBeLessThan(PACE_BYTES + SLACK_BYTES);
  let seen = 1;
  while (seen < FLOOD) {
    const { value: line } = await lines.next();
    if (line?.text.includes('"flood"')) seen += 1;
  }
  await lines.return();
  await flood;
  expect(sizeOf(server)).toBeGreaterThan(FLOOD * 1000);
});

test('a turn that stops reading lets the server finish, and a later reader has every line', async () => {
  const server = await openServer();
  const lines = server.feed.read({ paces: true });
  const first = lines.next();
  const flood = server.request('test/flood', { count: FLOOD });
  await first;
  await vi.waitFor(() => expect(sizeOf(server)).toBeGreaterThan(PACE_BYTES), { timeout: 10_000 });
  await lines.return();
  await flood;
  await server.close();
  let seen = 0;
  for await (const { text } of server.feed.read({ from: server.recordedFrom, paces: true }))
    if (text.includes('"flood"')) seen += 1;
  expect(seen).toBe(FLOOD);
});
