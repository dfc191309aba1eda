// Migrates a database to the current version in one transaction. Repeating it changes nothing.
import { refusal } from '../../run/request-error.js';
import { checkSound, tell } from './check-tables.js';
import { MIGRATIONS, type Migration } from './migrations.js';
import { returnFreePages, transact, type Database } from './open-database.js';

export const NEWEST_VERSION = MIGRATIONS.at(-1)?.version ?? 0;

// `check` inspects the result while it can still be rolled back.
export function migrate(
  db: Database,
  migrations: readonly Migration[] = MIGRATIONS,
  check: (db: Database) => void = () => {},
): void {
  const version = checkVersion(db, migrations);
  if (version === (migrations.at(-1)?.version ?? 0)) return check(db);
  if (countPages(db) === 0) returnFreePages(db);
  transact(db, () => {
    climb(db, version, migrations);
    check(db);
  });
}

function countPages(db: Database): number {
  return Number(tell(db, 'SELECT tell_value(page_count) FROM pragma_page_count')[0]);
}

// Within a transaction.
export function climb(db: Database, version: number, migrations: readonly Migration[] = MIGRATIONS): void {
  checkSound(db, version);
  for (const { version: step, up } of migrations.filter((migration) => migration.version > version)) {
    up(db);
    db.exec(`PRAGMA user_version = ${step}`);
  }
}

// Returns the version; refuses a newer one.
export function checkVersion(db: Database, migrations: readonly Migration[] = MIGRATIONS): number {
  const version = Number(tell(db, 'SELECT tell_value(user_version) FROM pragma_user_version')[0]);
  const newest = migrations.at(-1)?.version ?? 0;
  if (version > newest) throw refusal('DATABASE_TOO_NEW.sqlite', { version, known: newest });
  return version;
}
