// The tokens that all hosts of a database have in common: made from a secret that only the database and who may read it know.
import { createHmac } from 'node:crypto';
import type { Reader } from './database.js';

export async function loadSecret(db: Reader): Promise<string> {
  const [{ value }] = (await db.read<{ value: string }>({ name: 'read-secret', text: `SELECT value FROM parley.meta WHERE key = 'secret'`, values: [] })) as [{ value: string }];
  return value;
}

export function deriveToken(secret: string, what: 'operator' | 'hosts'): string {
  return `prl_${createHmac('sha256', secret).update(what).digest('base64url')}`;
}
