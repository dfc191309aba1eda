// A server on a real socket over an orchestrator with stand-in engines, in its own folder, and clients of it.
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pino } from 'pino';
import { createClient, type ParleyClient } from '../../src/client/client.js';
import { createService, DEFAULT_LIMITS, type Service, type ServiceDeps } from '../../src/service/service.js';
import { ATTEMPT_LIMITS } from '../../src/service/access/failed-attempts.js';
import { operatorIn, operatorToken } from '../../src/service/access/operator-token.js';
import { TokenBook } from '../../src/service/access/token-book.js';
import { addToken, tokensIn } from '../../src/service/access/tokens.js';
import { loadRun } from '../../src/journal/load-run.js';
import { describeDamage, verifyRun } from '../../src/audit/verify-run.js';
import { waitForFiles } from '../../src/journal/wait-for-files.js';
import { createRoot, openBench, type Bench } from './orchestrated.js';

export interface Served {
  readonly root: string;
  readonly bench: Bench;
  readonly service: Service;
  readonly url: string;
  readonly token: string;
  readonly client: ParleyClient;
  readonly logged: string[];
  // The names that it accepts; a proxy before it has another one.
  readonly hosts: Set<string>;
  // The token of another person or program.
  tokenOf(role: 'viewer' | 'replier' | 'operator'): string;
  // The cookie of a browser that signs in with a token, as a request header.
  signIn(token?: string): Promise<string>;
  // Method and path of every route of the document.
  routes(): Promise<(readonly [string, string])[]>;
  fetch(path: string, init?: RequestInit & { readonly as?: string | null }): Promise<Response>;
  close(): Promise<void>;
}

export async function serve(
  changes: { readonly root?: string; readonly bench?: Parameters<typeof openBench>[1] } & Partial<ServiceDeps> = {},
): Promise<Served> {
  const { root = createRoot(), bench: benchChanges, ...rest } = changes;
  const bench = await openBench(root, benchChanges);
  const token = operatorToken(bench.data.path);
  const hosts = new Set<string>();
  let url = '';
  const logged: string[] = [];
  const service = await createService({
    consoleDir: null,
    store: bench.data.store,
    orchestrator: bench.orchestrator,
    clock: bench.deps.clock,
    timers: bench.deps.timers,
    dataDir: bench.data.path,
    version: '0.0.0',
    tokens: new TokenBook({
      source: tokensIn(bench.data.path),
      operator: operatorIn(bench.data.path),
      userName: 'ann',
      clock: bench.deps.clock,
    }),
    access: bench.data.access,
    baseUrl: () => url,
    // No delay for wrong tokens: many of these tests send thousands.
    attemptLimits: { ...ATTEMPT_LIMITS, longestDelayMs: 0 },
    log: pino({ level: 'info' }, { write: (line: string) => void logged.push(line) }),
    engines: async () => [
      {
        name: 'codex',
        found: true,
        program: '/opt/codex',
        version: '1.0.0',
        proved_version: '1.0.0',
        login: true,
        forks: true,
        advice: null,
      },
    ],
    runDefaults: () => ({
      mode: null,
      permission: 'workspace-write',
      model: { codex: 'served-model' },
      limits: { turn_timeout_sec: null, idle_timeout_sec: 1800, tool_timeout_sec: 14_400, silence_notice_sec: 1800 },
    }),
    verify: (runId) =>
      loadRun(bench.data.store, runId).then(
        (run) =>
          verifyRun(bench.data.store, bench.data.path, run, {
            waitForFiles: waitForFiles(bench.deps.timers, async () => true),
          }),
        describeDamage,
      ),
    limits: DEFAULT_LIMITS,
    workspaceRoots: () => [join(root, 'allowed')],
    hosts: () => hosts,
    ...rest,
  });
  await service.app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = service.app.server.address() as AddressInfo;
  hosts.add(`127.0.0.1:${port}`).add(`localhost:${port}`);
  url = `http://127.0.0.1:${port}`;
  const routes = async () => {
    const { paths } = (await (
      await fetch(`${url}/openapi.json`, { headers: { authorization: `Bearer ${token}` } })
    ).json()) as { paths: Record<string, object> };
    return Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
    );
  };
  return {
    root,
    bench,
    service,
    url,
    token,
    client: createClient({ url, token }),
    logged,
    hosts,
    routes,
    signIn: async (as = token) => {
      const answer = await fetch(`${url}/v1/sign-in`, {
        method: 'POST',
        headers: { origin: url, 'content-type': 'application/json' },
        body: JSON.stringify({ token: as }),
      });
      return answer.headers.get('set-cookie')?.split(';')[0] ?? '';
    },
    tokenOf: (role) =>
      addToken(bench.data.path, `${role}-${logged.length}-${Math.floor(performance.now() * 1000)}`, {
        role,
        now: '2026-01-01T00:00:00.000Z',
      }),
    fetch: (path, { as = token, headers, ...init } = {}) =>
      fetch(`${url}${path}`, {
        redirect: 'manual',
        ...init,
        headers: {
          ...(as === null ? {} : { authorization: `Bearer ${as}` }),
          ...(init.body ? { 'content-type': 'application/json' } : {}),
          ...(headers as Record<string, string>),
        },
      }),
    close: async () => {
      await service.close();
      await bench.close();
    },
  };
}
