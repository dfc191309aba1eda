// The id of a database: created once by a migration, equal for all hosts, and not a secret.
import { refusal } from '../../../run/request-error.js';
import type { Reader } from './database.js';

export async function loadDatabaseId(db: Reader): Promise<string> {
  const [row] = await db.read<{ value: string }>({
    name: 'read-database-id',
    text: `SELECT value FROM parley.meta WHERE key = 'database_id'`,
    values: [],
  });
  if (!row) throw refusal('DATABASE_NOT_MIGRATED.no_id');
  return row.value;
}
