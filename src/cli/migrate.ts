// parley migrate: prepares the database that PARLEY_DATABASE_URL names, or brings it up to date. Doing it again changes nothing.
import { RequestError } from '../run/request-error.js';
import { EXIT, type Io } from './io.js';
import { databaseUrl } from './open-data.js';

export async function migrateCommand(io: Io): Promise<number> {
  const url = databaseUrl(io);
  if (url === null) throw new RequestError('INVALID_ARGUMENT', 'PARLEY_DATABASE_URL names no database; a data directory alone is brought up to date by itself');
  const { migratePostgres } = await import('../store/postgres/open-postgres.js');
  await migratePostgres(url);
  io.stdout.write('the database is ready\n');
  return EXIT.ok;
}
