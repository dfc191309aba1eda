// The library with a scripted server instead of Codex. Closes after each test everything that the test opened.
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { start, type CodexAppServer, type ServerEvent, type StartOptions } from '../../src/app-server/index.js';
import type { JsonObject } from '../../src/kernel/json.js';
import type { Timers } from '../../src/process/timers.js';
import { afterEachTest } from '../support/hooks.js';
import { onlyLong, SimulatedTimers } from '../support/simulated-timers.js';

const FAKE = fileURLToPath(new URL('../support/fake-app-server.mjs', import.meta.url));
// Long enough to be moved by hand.
export const TIMEOUT_MS = 60_000;

export interface FakeDesk {
  readonly root: string;
  readonly taskDir: string;
  readonly home: string;
  readonly simulated: SimulatedTimers;
  // Runs before the folder is removed, which is sooner than a test's own cleanup.
  atEnd(end: () => Promise<unknown>): void;
  open(rest?: Partial<StartOptions> & { readonly fake?: string; readonly timers?: Timers }): Promise<CodexAppServer>;
}

const endings: (() => Promise<unknown> | void)[] = [];
afterEachTest(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

export function openFakeDesk(): FakeDesk {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-app-server-')));
  endings.push(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const [taskDir, home, bin] = ['task', 'home', 'bin'].map((name) => join(root, name)) as [string, string, string];
  for (const folder of [taskDir, home, bin]) mkdirSync(folder);
  writeFileSync(join(bin, 'codex'), `#!/bin/sh\nexec "${process.execPath}" "${FAKE}" "$@"\n`, { mode: 0o755 });
  const simulated = new SimulatedTimers();
  return {
    root,
    taskDir,
    home,
    simulated,
    atEnd: (end) => void endings.push(end),
    async open({ fake = '', timers = onlyLong(simulated), ...rest } = {}) {
      const user = { home, env: { PATH: `${bin}:${dirname(process.execPath)}:/usr/bin:/bin`, SECRET_OF_MINE: 'x' } };
      const server = await start(
        { instance: 'one', taskDir, user, env: { FAKE: fake }, requestTimeoutMs: TIMEOUT_MS, ...rest },
        { timers },
      );
      endings.push(() => server.close());
      return server;
    },
  };
}

// The messages sent so far.
export function sent(server: CodexAppServer, method?: string): JsonObject[] {
  const lines = readFileSync(server.recording.requests, 'utf8')
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as JsonObject);
  return method === undefined ? lines : lines.filter((line) => line.method === method);
}

export const paramsSent = (server: CodexAppServer, method: string): unknown => sent(server, method).at(-1)?.params;

export async function threadIn(server: CodexAppServer): Promise<string> {
  return (await server.threads.start()).thread.id;
}

// All messages up to and including this method.
export async function readTo(
  server: CodexAppServer,
  method: string,
  from = server.recordedFrom,
): Promise<ServerEvent[]> {
  const events: ServerEvent[] = [];
  for await (const event of server.events({ from })) {
    events.push(event);
    if ('method' in event && event.method === method) return events;
  }
  throw new Error(`the server ended without ${method}`);
}
