// Tokens that were given a name, where all hosts find them. Only their hashes are here, also of one that was taken back: it never counts again.
import type { Database } from './database.js';

export interface TokenRow {
  readonly name: string;
  readonly role: string;
  readonly sha256: string;
  readonly created_at: string;
}

const REMOVED = 'removed';

export function listTokenRows(db: Database): Promise<TokenRow[]> {
  return db.read<TokenRow>({ name: 'list-tokens', text: 'SELECT name, role, sha256, created_at FROM parley.tokens WHERE role <> $1 ORDER BY created_at, name', values: [REMOVED] });
}

// False: there is one of this name, or it is the very one that was taken back.
export async function addTokenRow(db: Database, { name, role, sha256, created_at: made }: TokenRow): Promise<boolean> {
  return (await db.write({ name: 'add-token', text: `INSERT INTO parley.tokens (name, role, sha256, created_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT (name) DO UPDATE SET role = EXCLUDED.role, sha256 = EXCLUDED.sha256, created_at = EXCLUDED.created_at
    WHERE tokens.role = $5 AND tokens.sha256 <> EXCLUDED.sha256 RETURNING name`, values: [name, role, sha256, made, REMOVED] })).length === 1;
}

// False: there was none.
export async function removeTokenRow(db: Database, name: string): Promise<boolean> {
  return (await db.write({ name: 'remove-token', text: 'UPDATE parley.tokens SET role = $2 WHERE name = $1 AND role <> $2 RETURNING name', values: [name, REMOVED] })).length === 1;
}
