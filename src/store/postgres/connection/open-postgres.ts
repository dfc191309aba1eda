// Opens the store in a PostgreSQL database. Refuses a database of another version, and migrates only on request.
import { Database, type DatabaseOptions } from './database.js';
import { checkMigrated, migrate } from './migrate.js';
import { deleteOldJobs, type OldJobs } from './old-jobs.js';
import { PostgresStore, type PostgresStoreOptions } from '../postgres-store.js';

export interface OpenOptions extends PostgresStoreOptions, DatabaseOptions {
  readonly migrate?: boolean;
}

export async function openPostgres(url: string, options: OpenOptions): Promise<PostgresStore> {
  const database = new Database(url, options);
  const store = new PostgresStore(database, options);
  try {
    if (options.migrate) await migrate(database);
    await checkMigrated(database);
    await store.listen();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

// Returns how many jobs of an earlier version were deleted; null if there are none.
export async function migratePostgres(url: string): Promise<OldJobs | null> {
  const database = new Database(url);
  try {
    await migrate(database);
    return await deleteOldJobs(database);
  } finally {
    await database.close();
  }
}
