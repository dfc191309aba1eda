// Opens the store in a PostgreSQL database. One that is not of this version is refused, and migrated only if that is asked for.
import { Database, type DatabaseOptions } from './database.js';
import { migrateJobs } from './jobs.js';
import { checkMigrated, migrate } from './migrate.js';
import { PostgresStore, type PostgresStoreOptions } from './postgres-store.js';

export interface OpenOptions extends PostgresStoreOptions, DatabaseOptions {
  readonly migrate?: boolean;
}

export async function openPostgres(url: string, options: OpenOptions): Promise<PostgresStore> {
  const database = new Database(url, options);
  const store = new PostgresStore(database, options);
  try {
    if (options.migrate) await migrateAll(database, url);
    await checkMigrated(database);
    await store.listen();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

export async function migratePostgres(url: string): Promise<void> {
  const database = new Database(url);
  try {
    await migrateAll(database, url);
  } finally {
    await database.close();
  }
}

// Whoever finds our version finds the jobs, too.
async function migrateAll(database: Database, url: string): Promise<void> {
  await migrateJobs(database, url);
  await migrate(database);
}
