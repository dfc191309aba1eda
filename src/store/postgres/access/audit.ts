// The administrative journal in PostgreSQL. The head row is locked before a row is appended, so hosts that append at
// once get consecutive numbers and one chain.
import type { QueryResult } from 'pg';
import {
  MOST_ROWS,
  nextAuditRows,
  toAuditHead,
  type AuditEntry,
  type AuditHead,
  type AuditRow,
  type AuditType,
} from '../../audit.js';
import type { Database, Decision, Reader, Statement } from '../connection/database.js';
import { LostConnectionError } from '../connection/lost-connection.js';

export const LOCK_AUDIT: Statement = {
  name: 'lock-audit',
  text: 'SELECT seq, digest FROM parley.audit_head FOR UPDATE',
  values: [],
};

// A separate statement after the lock, so that it sees rows that were committed while the lock was awaited.
export const LAST_AUDIT: Statement = {
  name: 'last-audit',
  text: 'SELECT max(seq) AS last FROM parley.audit WHERE seq < $1',
  values: [MOST_ROWS],
};

// The effect of a transaction: nothing, or these statements and, if there is an entry, the row that records them.
export type AuditedDecision<T> =
  | { readonly leave: T }
  | { readonly write: readonly Statement[]; readonly answer: T; readonly entry: AuditEntry | null };

// Returns the statements that append an entry; `head` and `last` are the results of LOCK_AUDIT and LAST_AUDIT in the
// same transaction.
export function auditStatements(
  head: QueryResult | undefined,
  last: QueryResult | undefined,
  entry: AuditEntry,
): Statement[] {
  const { last: lastSeq } = (last?.rows[0] ?? { last: null }) as { last: number | null };
  return nextAuditRows(toAuditHead(head?.rows[0]), lastSeq ?? 0, entry).flatMap((row) => [
    {
      name: 'append-audit',
      text: `INSERT INTO parley.audit (seq, ts, type, actor_json, address, body_json, digest)
        VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      values: [row.seq, row.ts, row.type, row.actor_json, row.address, row.body_json, row.digest],
    },
    {
      name: 'move-audit-head',
      text: `INSERT INTO parley.audit_head (seq, digest) VALUES ($1, $2)
        ON CONFLICT (only_row) DO UPDATE SET seq = EXCLUDED.seq, digest = EXCLUDED.digest`,
      values: [row.seq, row.digest],
    },
  ]);
}

export function transactAudited<T>(
  db: Database,
  look: readonly Statement[],
  decide: (...answers: readonly QueryResult[]) => AuditedDecision<T>,
): Promise<T> {
  return db.transact<T>([LOCK_AUDIT, LAST_AUDIT, ...look], (head, last, ...answers): Decision<T> => {
    const decision = decide(...answers);
    if ('leave' in decision) return decision;
    const { write, answer, entry } = decision;
    return { write: entry === null ? write : [...write, ...auditStatements(head, last, entry)], answer };
  });
}

// `problem`: why the revocation could not be recorded; null: it was.
export interface Revoked<T> {
  readonly answer: T;
  readonly problem: unknown;
}

// Revokes even if the journal cannot be appended to: then in a second transaction, without a record.
export async function transactRevoking<T>(
  db: Database,
  look: readonly Statement[],
  decide: (...answers: readonly QueryResult[]) => AuditedDecision<T>,
): Promise<Revoked<T>> {
  try {
    return { answer: await transactAudited(db, look, decide), problem: null };
  } catch (error) {
    if (error instanceof LostConnectionError && error.uncertain) throw error;
    return { answer: await db.transact<T>(look, (...answers): Decision<T> => decide(...answers)), problem: error };
  }
}

const COLUMNS = 'seq, ts, type, actor_json, address, body_json, digest';

export function listAudit(db: Reader, after: number, limit: number): Promise<AuditRow[]> {
  return db.read<AuditRow>({
    name: 'list-audit',
    text: `SELECT ${COLUMNS} FROM parley.audit WHERE seq > $1 ORDER BY seq LIMIT $2`,
    values: [after, limit],
  });
}

export function listAuditOfType(db: Reader, type: AuditType, limit: number): Promise<AuditRow[]> {
  return db.read<AuditRow>({
    name: 'list-audit-of-type',
    text: `SELECT ${COLUMNS} FROM parley.audit WHERE type = $1 ORDER BY seq DESC LIMIT $2`,
    values: [type, limit],
  });
}

export async function readAuditHead(db: Reader): Promise<AuditHead | null> {
  const [head] = await db.read<AuditHead>({
    name: 'audit-head',
    text: 'SELECT seq, digest FROM parley.audit_head',
    values: [],
  });
  return toAuditHead(head);
}
