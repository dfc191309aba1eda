// parley migrate: prepares the database that PARLEY_DATABASE_URL names, or brings it up to date. Repeating it changes
// nothing.
import { refusal } from '../../run/request-error.js';
import type { OldJobs } from '../../store/postgres/connection/old-jobs.js';
import { safeText } from '../../terminal/safe-text.js';
import { EXIT, type Io } from '../io.js';
import { texts } from '../language/language.js';
import { databaseUrl } from '../open-data.js';

export async function migrateCommand(io: Io): Promise<number> {
  const url = databaseUrl(io);
  if (url === null) throw refusal('INVALID_ARGUMENT.migrate_database');
  const { migratePostgres } = await import('../../store/postgres/connection/open-postgres.js');
  const oldJobs = await migratePostgres(url);
  io.stdout.write(`${texts().migrate.ready}\n`);
  if (oldJobs) io.stdout.write(describeOldJobs(oldJobs));
  return EXIT.ok;
}

// Names come from the database, which others may write to.
function describeOldJobs({ deleted, others }: OldJobs): string {
  const { oldJobs, otherTasks, names, unused } = texts().migrate;
  const jobs = oldJobs(deleted);
  if (others.length > 0) return `${jobs}\n${otherTasks(others.map(safeText).join(names))}\n`;
  return `${unused(jobs)}\n  DROP SCHEMA graphile_worker CASCADE;\n`;
}
