// Tokens that were given a name, where all hosts find them. Only their hashes are here.
import type { Database } from './database.js';

export interface TokenRow {
  readonly name: string;
  readonly role: string;
  readonly sha256: string;
  readonly created_at: string;
}

export function listTokenRows(db: Database): Promise<TokenRow[]> {
  return db.read<TokenRow>({ name: 'list-tokens', text: 'SELECT name, role, sha256, created_at FROM parley.tokens ORDER BY created_at, name', values: [] });
}

// False: there is one of this name.
export async function addTokenRow(db: Database, { name, role, sha256, created_at: made }: TokenRow): Promise<boolean> {
  return (await db.write({ name: 'add-token', text: 'INSERT INTO parley.tokens (name, role, sha256, created_at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING name', values: [name, role, sha256, made] })).length === 1;
}

// False: there was none.
export async function removeTokenRow(db: Database, name: string): Promise<boolean> {
  return (await db.write({ name: 'remove-token', text: 'DELETE FROM parley.tokens WHERE name = $1 RETURNING name', values: [name] })).length === 1;
}
