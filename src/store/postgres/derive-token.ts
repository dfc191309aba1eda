// The tokens that all hosts of a database have in common: made from a secret that only the database and who may read it know.
import { createHmac } from 'node:crypto';
import { RequestError } from '../../run/request-error.js';
import type { Reader } from './database.js';

// What the operator is known by, and the hosts to each other; what hosts prove themselves with; what the cookies of browsers are named after.
export type Purpose = 'operator' | 'hosts' | 'proof' | 'cookie';

export async function loadSecret(db: Reader): Promise<string> {
  const [row] = await db.read<{ value: string }>({ name: 'read-secret', text: `SELECT value FROM parley.meta WHERE key = 'secret'`, values: [] });
  // It comes with a migration that is not done twice.
  if (!row) throw new RequestError('DATABASE_NOT_MIGRATED', 'the database has lost the secret that the tokens of its hosts are made from: restore the row "secret" of parley.meta from a backup');
  return row.value;
}

export function deriveToken(secret: string, what: Purpose): string {
  return `prl_${createHmac('sha256', secret).update(what).digest('base64url')}`;
}
