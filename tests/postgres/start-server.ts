// Runs once for all tests of this project: a PostgreSQL server, or the configured one, with a migrated database that
// each test gets a copy of. It is stopped at the end, whatever the result.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { Client } from 'pg';
import type { TestProject } from 'vitest/node';
import { migratePostgres } from '../../src/store/postgres/connection/open-postgres.js';
import { onDatabase } from '../support/postgres.js';

declare module 'vitest' {
  export interface ProvidedContext {
    postgres: { readonly admin: string; readonly template: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const configured = process.env['PARLEY_TEST_DATABASE_URL'];
  const server = configured === undefined ? await startServer() : { url: configured, stop: async () => {} };
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

// These tests end connections abruptly, not machines: nothing has to be on disk.
async function startServer(): Promise<{ url: string; stop: () => Promise<void> }> {
  const child = spawn(
    process.execPath,
    [new URL('../../scripts/postgres-server.mjs', import.meta.url).pathname, '--fast'],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  const exit = once(child, 'exit');
  const line = once(createInterface(child.stdout), 'line') as Promise<[string]>;
  const [url] = await Promise.race([
    line,
    exit.then(() =>
      Promise.reject(new Error('PostgreSQL could not be started; set PARLEY_TEST_DATABASE_URL to use one that runs')),
    ),
  ]);
  return {
    url,
    stop: async () => {
      child.stdin.end();
      await exit;
    },
  };
}

async function execute(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
}
