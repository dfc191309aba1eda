// Named tokens in the database, for all hosts. Only hashes are stored, also those of revoked tokens, which never become
// valid again. Each change is recorded in the administrative journal in the same transaction, and all hosts are
// notified. A revocation takes effect even if it cannot be recorded.
import type { AuditEntry } from '../../audit.js';
import { forgetTokenStatements, NOTIFY_ACCESS } from './access.js';
import { transactAudited, transactRevoking, type Revoked } from './audit.js';
import type { Database, Reader, Statement } from '../connection/database.js';

export interface TokenRow {
  readonly name: string;
  readonly role: string;
  readonly sha256: string;
  readonly created_at: string;
  readonly person?: string | undefined;
  readonly expires_at?: string | undefined;
}

const REMOVED = 'removed';

export async function listTokenRows(db: Reader): Promise<TokenRow[]> {
  const text = `SELECT name, role, sha256, created_at, person, expires_at FROM parley.tokens
     WHERE role <> $1 ORDER BY created_at, name`;
  const rows = await db.read<Record<keyof TokenRow, string | null>>({ name: 'list-tokens', text, values: [REMOVED] });
  return rows.map(
    (row) => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as TokenRow,
  );
}

// False: the name exists, or exactly this token was revoked.
export function addTokenRow(
  db: Database,
  { name, role, sha256, created_at: made, person, expires_at: expires }: TokenRow,
  entry: AuditEntry,
): Promise<boolean> {
  const insert: Statement = {
    name: 'add-token',
    text: `INSERT INTO parley.tokens (name, role, sha256, created_at, person, expires_at)
      VALUES ($1, $2, $3, $4, $6, $7)
      ON CONFLICT (name) DO UPDATE SET role = EXCLUDED.role, sha256 = EXCLUDED.sha256,
        created_at = EXCLUDED.created_at, person = EXCLUDED.person, expires_at = EXCLUDED.expires_at
      WHERE tokens.role = $5 AND tokens.sha256 <> EXCLUDED.sha256 RETURNING name`,
    values: [name, role, sha256, made, REMOVED, person ?? null, expires ?? null],
  };
  return transactAudited<boolean>(db, [insert], (added) =>
    added?.rows.length === 1 ? { write: [NOTIFY_ACCESS], answer: true, entry } : { leave: false },
  );
}

// Resolves to false if there was no such token.
export function removeTokenRow(db: Database, name: string, entry: AuditEntry): Promise<Revoked<boolean>> {
  const update = {
    name: 'remove-token',
    text: 'UPDATE parley.tokens SET role = $2 WHERE name = $1 AND role <> $2 RETURNING sha256',
    values: [name, REMOVED],
  };
  return transactRevoking<boolean>(db, [update], (removed) => {
    const row = removed?.rows[0] as { readonly sha256: string } | undefined;
    return row
      ? { write: [...forgetTokenStatements(row.sha256), NOTIFY_ACCESS], answer: true, entry }
      : { leave: false };
  });
}

// Replaces the value of a token. Resolves to false if the name does not exist.
export function rotateTokenRow(
  db: Database,
  { name, sha256, created_at: made, expires_at: expires }: TokenRow,
  entry: AuditEntry,
): Promise<Revoked<boolean>> {
  const look = {
    name: 'token-to-rotate',
    text: 'SELECT sha256 FROM parley.tokens WHERE name = $1 AND role <> $2 FOR UPDATE',
    values: [name, REMOVED],
  };
  return transactRevoking<boolean>(db, [look], (rows) => {
    const row = rows?.rows[0] as { readonly sha256: string } | undefined;
    if (!row) return { leave: false };
    const update = {
      name: 'rotate-token',
      text: 'UPDATE parley.tokens SET sha256 = $2, created_at = $3, expires_at = $4 WHERE name = $1',
      values: [name, sha256, made, expires ?? null],
    };
    return { write: [update, ...forgetTokenStatements(row.sha256), NOTIFY_ACCESS], answer: true, entry };
  });
}
