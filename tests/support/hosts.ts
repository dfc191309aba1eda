// Several built servers on one database, with stand-in engines; each may be killed, stopped, cut off and started again.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { createSite, type Site } from './command.js';
import { withDatabase, type TestDatabase } from './postgres.js';
import { startServer, type ServerProcess } from './served-process.js';

export const TOKEN = 'prl_token-of-all-hosts';

export interface Hosts {
  readonly database: TestDatabase;
  readonly site: Site;
  // With files of its own, or with those that all share; the database may be reached by another address. Without a token it has that of the
  // database.
  start(name: string, options?: { readonly url?: string; readonly token?: string | null }): Promise<ServerProcess>;
}

export interface HostsOptions {
  readonly files?: 'host' | 'shared';
  readonly leaseSec?: number;
  readonly goneSec?: number;
  readonly slots?: number;
}

export async function withHosts({ files = 'shared', leaseSec = 3, goneSec = 5, slots = 4 }: HostsOptions = {}): Promise<Hosts> {
  const database = await withDatabase();
  const site = createSite();
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
    start: async (name, { url = database.url, token = TOKEN } = {}) => {
      const data = files === 'shared' ? site.data : join(site.root, `data-${name}`);
      mkdirSync(data, { recursive: true, mode: 0o700 });
      writeFileSync(join(data, 'config.json'), JSON.stringify({ slots, cluster: { files, lease_sec: leaseSec, gone_sec: goneSec }, shutdown_grace_sec: 0.1 }));
      const server = await startServer({ ...site, data, env: { ...site.env, PARLEY_DATA: data, PARLEY_DATABASE_URL: url, ...(token === null ? {} : { PARLEY_TOKEN: token }), HOSTNAME: name } });
      servers.push(server);
      return server;
    },
  };
}
