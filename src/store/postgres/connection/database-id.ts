// The id of a database: made once by a migration, the same for all hosts, and no secret.
import { RequestError } from '../../../run/request-error.js';
import type { Reader } from './database.js';

export async function loadDatabaseId(db: Reader): Promise<string> {
  const [row] = await db.read<{ value: string }>({
    name: 'read-database-id',
    text: `SELECT value FROM parley.meta WHERE key = 'database_id'`,
    values: [],
  });
  if (!row)
    throw new RequestError(
      'DATABASE_NOT_MIGRATED',
      'The database has lost its id. Make another: ' +
        `INSERT INTO parley.meta (key, value) VALUES ('database_id', gen_random_uuid()::text)`,
    );
  return row.value;
}
