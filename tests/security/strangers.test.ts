// Somebody on the network without a token, who only wants to take what there is of files, connections and time.
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/service/service.js';
import { serve } from '../support/served.js';

test('connections are limited, so that files are left for the work; whoever is connected goes on, and there is room again', async () => {
  const served = await serve({ limits: { ...DEFAULT_LIMITS, streams: 1 } });
  const { hostname, port } = new URL(served.url);
  const sockets: Socket[] = [];
  const open = async (): Promise<'taken' | 'dropped'> => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    sockets.push(socket);
    // One that is taken is answered; one that is dropped is closed.
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    return new Promise((resolve) => void socket.once('data', () => resolve('taken')).once('close', () => resolve('dropped')));
  };
  try {
    const outcomes: string[] = [];
    for (let batch = 0; batch < 11; batch += 1) outcomes.push(...(await Promise.all(Array.from({ length: 100 }, open))));
    const taken = outcomes.filter((outcome) => outcome === 'taken').length;
    expect(taken).toBeGreaterThan(900);
    expect(taken).toBeLessThanOrEqual(1001);
    // A run goes on meanwhile.
    const { run_id: id } = await served.bench.orchestrator.create({ engine: 'codex', prompt: '[[answer x]]' });
    expect((await served.bench.orchestrator.settled(id)).status).toBe('succeeded');
    for (const socket of sockets) socket.destroy();
    // fetch waits for ever where it was dropped.
    await expect.poll(() => served.fetch('/healthz', { signal: AbortSignal.timeout(1000) }).then(({ status }) => status, () => 0), { timeout: 20_000 }).toBe(200);
  } finally {
    for (const socket of sockets) socket.destroy();
    await served.close();
  }
});

test('a connection that says nothing is closed after a while', async () => {
  const served = await serve({ limits: { ...DEFAULT_LIMITS, requestMs: 1000 } });
  const { hostname, port } = new URL(served.url);
  try {
    const silent = connect(Number(port), hostname).on('error', () => {});
    silent.resume();
    await once(silent, 'close');
    expect(silent.destroyed).toBe(true);
  } finally {
    await served.close();
  }
});
