// Several built servers on one database, with stand-in engines; each can be killed, stopped, isolated and restarted.
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { ParleyClient } from '../../src/client/client.js';
import { createSite, type Site } from './command.js';
import { readTrace, type TracedProcess } from './engine-trace.js';
import { withDatabase, type TestDatabase } from './postgres.js';
import { startServer, type ServerProcess } from './served-process.js';

export const TOKEN = 'prl_5Wq9tB2xLc8Hf4Zn7Rk1Jv6Gm3Ds0Py';

// Engines get these variables as well: a wrong clock is wrong for all processes of a machine.
const PASSED = ['NODE_OPTIONS', 'ENGINE_TRACE', 'CLOCK_SHIFT_MS'];
const PRELOADS = ['shift-clock.mjs', 'trace-engine.mjs']
  .map((name) => `--import=${new URL(name, import.meta.url).href}`)
  .join(' ');

interface StartOptions {
  // Another address of the database.
  readonly url?: string;
  // If it is absent, the token of its data directory.
  readonly token?: string | null;
  // How wrong the clock of this host is.
  readonly shiftMs?: number;
}

export interface Hosts {
  readonly database: TestDatabase;
  readonly site: Site;
  // With its own files, or with shared ones.
  start(name: string, options?: StartOptions): Promise<ServerProcess>;
  // The processes of engines, as they recorded themselves.
  traced(runId?: string): TracedProcess[];
  // Folders of a run, on any host.
  foldersOf(runId: string): string[];
}

export interface HostsOptions {
  readonly files?: 'host' | 'shared';
  readonly leaseSec?: number;
  readonly goneSec?: number;
  readonly slots?: number;
  readonly recovery?: object;
}

export async function withHosts({
  files = 'shared',
  leaseSec = 3,
  goneSec = 5,
  slots = 4,
  recovery = {},
}: HostsOptions = {}): Promise<Hosts> {
  const database = await withDatabase();
  const site = createSite();
  const trace = join(site.root, 'engines.jsonl');
  const servers: ServerProcess[] = [];
  onTestFinished(async () => {
    for (const { child } of servers) child.kill('SIGCONT');
    for (const { child } of servers) child.kill('SIGKILL');
    await Promise.all(servers.map(({ ended }) => ended));
    await database.drop();
  });
  return {
    database,
    site,
    start: async (name, { url = database.url, token = TOKEN, shiftMs = 0 } = {}) => {
      const data = files === 'shared' ? site.data : join(site.root, `data-${name}`);
      mkdirSync(data, { recursive: true, mode: 0o700 });
      writeFileSync(
        join(data, 'config.json'),
        JSON.stringify({
          slots,
          recovery,
          cluster: { files, lease_sec: leaseSec, gone_sec: goneSec },
          shutdown_grace_sec: 0.1,
          env_passthrough: PASSED,
        }),
      );
      const env = {
        ...site.env,
        PARLEY_DATA: data,
        PARLEY_DATABASE_URL: url,
        ...(token === null ? {} : { PARLEY_TOKEN: token }),
        HOSTNAME: name,
        NODE_OPTIONS: PRELOADS,
        ENGINE_TRACE: trace,
        CLOCK_SHIFT_MS: String(shiftMs),
      };
      const server = await startServer({ ...site, data, env });
      servers.push(server);
      return server;
    },
    traced: (runId) => readTrace(trace).filter((each) => runId === undefined || each.runId === runId),
    foldersOf: (runId) =>
      readdirSync(site.root)
        .filter((name) => name.startsWith('data'))
        .map((name) => join(site.root, name, 'runs'))
        .flatMap((runs) =>
          existsSync(runs)
            ? readdirSync(runs)
                .filter((name) => name.startsWith(runId))
                .map((name) => join(runs, name))
            : [],
        ),
  };
}

export const becomes = (client: ParleyClient, id: string) =>
  expect.poll(async () => (await client.get(id)).status, { timeout: 30_000 });

// Files next to the store are written after it.
export const proves = (client: ParleyClient, id: string) =>
  expect.poll(async () => (await client.verify(id)).checks.filter(({ ok }) => !ok), { timeout: 10_000 }).toEqual([]);

// All stored data of a run except the progress of its files, which are written later.
export async function rowsOf(
  { database }: Hosts,
  id: string,
): Promise<{ run: object[]; segments: object[]; interactions: object[] }> {
  return {
    run: await database.query(
      'SELECT status, attempt_number, epoch, owner, site, resident, reserved_by, error_json, result_json, ' +
        'updated_at, rasp_seq, fcmp_seq, digest, last_commit FROM parley.runs WHERE run_id = $1',
      [id],
    ),
    segments: await database.query(
      'SELECT protocol, seq_from, seq_to, epoch, sha256(body) AS body FROM parley.segments WHERE run_id = $1 ' +
        'ORDER BY protocol, seq_from',
      [id],
    ),
    interactions: await database.query('SELECT * FROM parley.interactions WHERE run_id = $1 ORDER BY interaction_id', [
      id,
    ]),
  };
}
