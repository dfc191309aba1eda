// The HTTP service of runs that are open in this process, on a free port.
import { once } from 'node:events';
import { get } from 'node:http';
import { pino } from 'pino';
import { systemClock } from '../../dist/kernel/clock.js';
import { systemTimers } from '../../dist/process/timers.js';
import { createService, DEFAULT_LIMITS } from '../../dist/service/service.js';
import { fixedOperator } from '../../dist/service/access/operator-token.js';
import { TokenBook } from '../../dist/service/access/token-book.js';
import { tokensIn } from '../../dist/service/access/tokens.js';

export async function openService({ data, orchestrator, token, root }) {
  const hosts = new Set();
  const service = await createService({
    store: data.store,
    orchestrator,
    clock: systemClock,
    timers: systemTimers,
    dataDir: data.path,
    version: 'bench',
    tokens: new TokenBook({
      source: tokensIn(data.path),
      operator: fixedOperator(token),
      userName: 'bench',
      clock: systemClock,
    }),
    access: data.access,
    baseUrl: () => '',
    log: pino({ level: 'silent' }),
    engines: async () => [],
    limits: DEFAULT_LIMITS,
    workspaceRoots: () => [root],
    hosts: () => hosts,
  });
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = service.app.server.address();
  hosts.add(`127.0.0.1:${port}`);
  return { url: `http://127.0.0.1:${port}`, close: () => service.close() };
}

// Reads a response to its end without keeping it; a stream until this text has come. Returns how many bytes were read.
export async function readResponse(url, { headers, agent, until } = {}) {
  const request = get(url, { headers, agent });
  const [response] = await once(request, 'response');
  if (response.statusCode !== 200) throw new Error(`${url} returned ${response.statusCode}`);
  let bytes = 0;
  let tail = '';
  for await (const chunk of response) {
    bytes += chunk.length;
    if (until === undefined) continue;
    tail = (tail + chunk.latin1Slice()).slice(-chunk.length - until.length);
    if (tail.includes(until)) return bytes;
  }
  if (until !== undefined) throw new Error(`${url} ended without "${until}"`);
  return bytes;
}
