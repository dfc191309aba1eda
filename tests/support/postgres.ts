// A separate database for each test, as a copy of the migrated one, and operations of tests on a server.
import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { inject } from 'vitest';

export interface TestDatabase {
  readonly url: string;
  // As an administrator, in this database, on a separate connection.
  query<R extends object>(sql: string, values?: unknown[]): Promise<R[]>;
  // Ends all other connections to it; returns how many there were.
  terminate(condition?: string): Promise<number>;
  // Waits until so many connections wait for a lock.
  untilWaiting(count: number): Promise<void>;
  drop(): Promise<void>;
}

export function onDatabase(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

// `empty`: one that Parley has never used.
export async function withDatabase({ empty = false } = {}): Promise<TestDatabase> {
  const { admin, template } = inject('postgres');
  const name = `parley_test_${randomBytes(8).toString('hex')}`;
  await once(admin, `CREATE DATABASE ${name} ${empty ? '' : `TEMPLATE ${template}`}`);
  const url = onDatabase(admin, name);
  const client = new Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  const query = async <R extends object>(sql: string, values: unknown[] = []): Promise<R[]> =>
    (await client.query<R>(sql, values)).rows;
  return {
    url,
    query,
    terminate: async (condition = 'true') =>
      (
        await query(
          `SELECT pg_terminate_backend(pid)
           FROM pg_stat_activity
           WHERE datname = current_database() AND pid <> pg_backend_pid() AND (${condition})`,
        )
      ).length,
    untilWaiting: (count) =>
      until(
        `${count} wait for a lock`,
        async () =>
          (await query(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`))
            .length >= count,
      ),
    drop: async () => {
      await client.end();
      await once(admin, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

async function once(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

// Waits for a condition, and reports the difference on a timeout.
export async function until(what: string, isSo: () => boolean | Promise<boolean>, ms = 30_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await isSo())) {
    if (performance.now() > end) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
