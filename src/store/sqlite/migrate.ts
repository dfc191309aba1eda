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

// Without a prepared statement: one that is not collected yet would hold the files of a database that is closed.
function readVersion(db: Database): number {
  let version = 0;
  db.function('tell_version', (value: unknown) => {
    version = Number(value);
    return null;
  });
  db.exec('SELECT tell_version(user_version) FROM pragma_user_version');
  return version;
}
