// The store in PostgreSQL meets the contract of every store, with and without a host.
import { openPostgres } from '../../src/store/postgres/connection/open-postgres.js';
import { registerHost } from '../../src/store/postgres/hosts/host-lease.js';
import { describeStore } from '../store/conformance.js';
import { withDatabase } from '../support/postgres.js';

for (const host of [null, 'host_1']) {
  describeStore(host === null ? 'PostgreSQL' : 'PostgreSQL of a host', async () => {
    const database = await withDatabase();
    const store = await openPostgres(database.url, { host });
    if (host !== null) await registerHost(store.database, { host_id: host, name: 'one', url: null, ttlMs: 600_000 });
    await database.query('SET search_path TO parley');
    return {
      store,
      execute: async (sql) => void (await database.query(sql)),
      cleanup: async () => {
        await store.close();
        await database.drop();
      },
    };
  });
}
