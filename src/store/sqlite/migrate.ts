// Brings a database to the present version, each step in a transaction of its own; doing it again changes nothing.
import { RequestError } from '../../run/request-error.js';
import { MIGRATIONS, type Migration } from './migrations.js';
import { transact, type Database } from './open-database.js';

export const NEWEST_VERSION = MIGRATIONS.at(-1)?.version ?? 0;

export function migrate(db: Database, migrations: readonly Migration[] = MIGRATIONS): void {
  const version = checkVersion(db, migrations);
  for (const { version: step, up } of migrations.filter((migration) => migration.version > version)) {
    transact(db, () => {
      up(db);
      db.exec(`PRAGMA user_version = ${step}`);
    });
  }
}

// Answers the version; refuses one of the future.
export function checkVersion(db: Database, migrations: readonly Migration[] = MIGRATIONS): number {
  const version = readVersion(db);
  const newest = migrations.at(-1)?.version ?? 0;
  if (version > newest) throw new RequestError('DATABASE_TOO_NEW', `the database has version ${version}, this Parley knows ${newest}: use the Parley that wrote it, or a later one`);
  return version;
}

function readVersion(db: Database): number {
  return (db.prepare('PRAGMA user_version').get() as { user_version: number }).user_version;
}
