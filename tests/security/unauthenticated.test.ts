// An unauthenticated caller on the network who tries to exhaust files, connections and time.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../src/service/service.js';
import { limitConnections, readOpenFiles } from '../../src/service/limits/limit-connections.js';
import { createSite } from '../support/command.js';
import { open } from '../support/raw-http.js';
import { serve } from '../support/served.js';
import { startServer } from '../support/served-process.js';

test('connections are limited to leave files for the work; runs continue, and closing makes room again', async () => {
  const served = await serve({ limits: { ...DEFAULT_LIMITS, streams: 1 } });
  const { hostname, port } = new URL(served.url);
  const sockets: Socket[] = [];
  const knock = async (): Promise<'taken' | 'dropped'> => {
    const socket = connect(Number(port), hostname).on('error', () => {});
    sockets.push(socket);
    // An accepted connection gets a response; a dropped one is closed.
    socket.write(`GET /healthz HTTP/1.1\r\nHost: ${hostname}:${port}\r\n\r\n`);
    return new Promise(
      (resolve) => void socket.once('data', () => resolve('taken')).once('close', () => resolve('dropped')),
    );
  };
  try {
    const outcomes: string[] = [];
    for (let batch = 0; batch < 11; batch += 1)
      outcomes.push(...(await Promise.all(Array.from({ length: 100 }, knock))));
    const taken = outcomes.filter((outcome) => outcome === 'taken').length;
    expect(taken).toBeGreaterThan(900);
    expect(taken).toBeLessThanOrEqual(1001);
    // A run continues meanwhile.
    const { run_id: id } = await served.bench.orchestrator.create({ engine: 'codex', prompt: '[[answer x]]' });
    expect((await served.bench.orchestrator.waitUntilIdle(id)).status).toBe('succeeded');
    for (const socket of sockets) socket.destroy();
    // fetch waits forever on a dropped connection.
    await expect
      .poll(
        () =>
          served.fetch('/healthz', { signal: AbortSignal.timeout(1000) }).then(
            ({ status }) => status,
            () => 0,
          ),
        { timeout: 20_000 },
      )
      .toBe(200);
  } finally {
    for (const socket of sockets) socket.destroy();
    await served.close();
  }
});

const isHeld = (socket: Socket): boolean => !socket.destroyed;

test('a server that may have few files open keeps enough of them for its work, however many connect', async () => {
  const site = createSite();
  const server = await startServer(site, ['--port', '0'], { through: ['sh', '-c', 'ulimit -n 256; exec "$0" "$@"'] });
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  // Over the one connection that existed before.
  const ask = (method: string, path: string, body?: object): Promise<{ run_id: string; status: string }> =>
    new Promise((resolve, reject) => {
      const text = body && JSON.stringify(body);
      const asked = request(
        {
          agent,
          host: '127.0.0.1',
          port: server.port,
          method,
          path,
          headers: { authorization: `Bearer ${server.token}`, ...(text ? { 'content-type': 'application/json' } : {}) },
        },
        (response) => {
          response.setEncoding('utf8');
          let got = '';
          response
            .on('data', (chunk: string) => (got += chunk))
            .on('end', () => resolve(JSON.parse(got) as { run_id: string; status: string }));
        },
      );
      asked.on('error', reject).end(text);
    });
  const sockets: Socket[] = [];
  try {
    await ask('GET', '/healthz');
    const outcomes = await Promise.all(
      Array.from({ length: 400 }, async () => {
        const socket = open(server.url);
        sockets.push(socket);
        socket.resume();
        await once(socket, 'connect');
        // Neither sends anything for a while: the server drops refused connections at once.
        socket.write('GET /healthz HTTP/1.1\r\n');
        return socket;
      }),
    );
    await expect.poll(() => outcomes.filter(isHeld).length, { timeout: 10_000 }).toBeLessThan(100);
    expect(outcomes.filter(isHeld).length).toBeGreaterThan(50);
    expect(readdirSync(`/proc/${server.child.pid}/fd`).length).toBeLessThan(200);
    const created = await Promise.all(
      Array.from({ length: 4 }, (_, number) =>
        ask('POST', '/v1/runs', { engine: 'rehearsal', prompt: `[[events 50 100]][[done ${number}]]` }),
      ),
    );
    for (const { run_id: id } of created)
      await expect.poll(async () => (await ask('GET', `/v1/runs/${id}`)).status, { timeout: 30_000 }).toBe('succeeded');
  } finally {
    for (const socket of sockets) socket.destroy();
    agent.destroy();
  }
  server.child.kill('SIGTERM');
  const { code, stdout, stderr } = await server.ended;
  expect(code).toBe(0);
  expect(`${stdout}${stderr}`).toContain('this process may have 256 files open');
  expect(`${stdout}${stderr}`).not.toContain('EMFILE');
});

test.each([
  ['as many as wanted', 4000, 1_048_576, { connections: 5000, streams: 4000 }],
  ['without a known limit', 4000, Infinity, { connections: 5000, streams: 4000 }],
  ['a third of the files', 4000, 1024, { connections: 341, streams: 272 }],
  ['few streams as they were', 5, 1024, { connections: 341, streams: 5 }],
  ['never none', 4000, 2, { connections: 1, streams: 1 }],
])('connections and streams: %s', (_what, streams, files, expected) => {
  expect(limitConnections(streams, files)).toMatchObject(expected);
});

test('where the system says how many files may be open it is read, else it has no end', () => {
  expect(readOpenFiles(import.meta.filename)).toBe(Infinity);
  expect(readOpenFiles('/nowhere/limits')).toBe(Infinity);
  expect(readOpenFiles()).toBe(
    process.platform === 'linux'
      ? Number(execFileSync('sh', ['-c', 'ulimit -Sn'], { encoding: 'utf8' }).trim().replace('unlimited', 'Infinity'))
      : Infinity,
  );
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

// Everything that the server sends until it closes the connection. The client never closes it.
async function sendPart(url: string, head: readonly string[], body: Buffer): Promise<string> {
  const socket = open(url);
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.write(body);
  await new Promise((resolve) => socket.once('close', resolve));
  return text;
}

test('a large body of an unknown caller is refused unread on every route, and its connection is closed', async () => {
  // A server that waits for the rest of the body would close the connection only after five minutes.
  const served = await serve({ limits: { ...DEFAULT_LIMITS, requestMs: 300_000 } });
  const { host } = new URL(served.url);
  const announced = 'Content-Length: 15728640';
  const half = Buffer.alloc(2 * 1024 * 1024, 0x20);
  const chunk = Buffer.concat([Buffer.from(`${half.length.toString(16)}\r\n`), half, Buffer.from('\r\n')]);
  try {
    const routes = [...(await served.routes()), ['POST', '/nowhere']] as const;
    const anyone = new Set(['/healthz', '/readyz']);
    await Promise.all(
      routes
        .filter(([, path]) => !anyone.has(path))
        .flatMap(([method, path]) => {
          const head = [
            `${method} ${path.replace('{id}', 'run_00000000000000000000000000')} HTTP/1.1`,
            `Host: ${host}`,
            `Origin: ${served.url}`,
            'Content-Type: application/json',
          ];
          return (
            [
              [announced, half],
              ['Transfer-Encoding: chunked', chunk],
            ] as const
          ).map(async ([length, body]) => {
            const text = await sendPart(served.url, [...head, length], body);
            expect(text, `${method} ${path}, ${length}`).toMatch(
              path === '/v1/sign-in' ? /^HTTP\/1\.1 413 / : /^HTTP\/1\.1 401 /,
            );
          });
        }),
    );
    for (const path of anyone)
      expect(await sendPart(served.url, [`GET ${path} HTTP/1.1`, `Host: ${host}`, announced], half)).toMatch(
        /^HTTP\/1\.1 200 /,
      );
  } finally {
    await served.close();
  }
});

test('a sign-in without an Origin header is refused before its body arrives', async () => {
  const served = await serve();
  const { host } = new URL(served.url);
  try {
    const text = await sendPart(
      served.url,
      ['POST /v1/sign-in HTTP/1.1', `Host: ${host}`, 'Content-Type: application/json', 'Content-Length: 100'],
      Buffer.from('{'),
    );
    expect(text).toMatch(/^HTTP\/1\.1 403 [^]*ORIGIN_NOT_ALLOWED/);
  } finally {
    await served.close();
  }
});
