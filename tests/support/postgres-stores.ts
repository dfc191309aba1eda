// A database with as many stores as a test needs, all closed at its end.
import { onTestFinished } from 'vitest';
import { registerHost, type HostLease } from '../../src/store/postgres/hosts/host-lease.js';
import { openPostgres, type OpenOptions } from '../../src/store/postgres/connection/open-postgres.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type { NewRun, RunRecord, Store } from '../../src/store/store.js';
import { change, newRun, type RowEdit } from '../store/conformance.js';
import { withDatabase, type TestDatabase } from './postgres.js';
import { openPostgresProxy, type PostgresProxy } from './postgres-proxy.js';

export interface Stores extends TestDatabase {
  store(options?: Partial<OpenOptions> & { url?: string }): Promise<PostgresStore>;
  // A store whose host has a lease.
  host(id: string): Promise<PostgresStore & { lease: HostLease }>;
  // Expires the lease of this host now.
  expire(id: string): Promise<void>;
  proxy(): Promise<PostgresProxy>;
}

export async function withStores(options: { empty?: boolean } = {}): Promise<Stores> {
  const database = await withDatabase(options);
  const closing: (() => Promise<void>)[] = [];
  onTestFinished(async () => {
    await Promise.all(closing.map((close) => close()));
    await database.drop();
  });
  const store: Stores['store'] = async ({ url = database.url, ...rest } = {}) => {
    const opened = await openPostgres(url, { host: null, ...rest });
    closing.push(() => opened.close());
    return opened;
  };
  return {
    ...database,
    store,
    host: async (id) => {
      const opened = await store({ host: id });
      return Object.assign(opened, {
        lease: await registerHost(opened.database, { host_id: id, name: `name of ${id}`, url: null, ttlMs: 600_000 }),
      });
    },
    expire: async (id) => {
      await database.query(
        `UPDATE parley.hosts SET lease_until = clock_timestamp() - interval '1 second' WHERE host_id = $1`,
        [id],
      );
    },
    proxy: async () => {
      const proxy = await openPostgresProxy(database.url);
      closing.push(() => proxy.close());
      return proxy;
    },
  };
}

export async function create(store: Store, number = 1, changes: Partial<NewRun> = {}): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number, changes));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

export async function commit(store: Store, run: RunRecord, rest: RowEdit = {}): Promise<RunRecord> {
  const outcome = await store.append(change(run, rest));
  if (!outcome.committed) throw new Error(outcome.reason);
  return (await store.loadRun(run.run_id)) as RunRecord;
}
