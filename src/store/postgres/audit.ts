// The administrative journal in PostgreSQL. The head row is locked before a row is appended, so hosts that append at
// once get consecutive numbers and one chain.
import type { QueryResult } from 'pg';
import { nextAuditRow, type AuditEntry, type AuditHead, type AuditRow, type AuditType } from '../audit.js';
import type { Database, Decision, Reader, Statement } from './database.js';

export const LOCK_AUDIT: Statement = {
  name: 'lock-audit',
  text: 'SELECT seq, digest FROM parley.audit_head FOR UPDATE',
  values: [],
};

// What a transaction does: nothing, or these statements and, where there is an entry, the row that records them.
export type AuditedDecision<T> =
  | { readonly leave: T }
  | { readonly write: readonly Statement[]; readonly answer: T; readonly entry: AuditEntry | null };

// The statements that append an entry; `head` was locked by LOCK_AUDIT in the same transaction.
export function auditStatements(head: QueryResult | undefined, entry: AuditEntry): Statement[] {
  const row = nextAuditRow(head?.rows[0] as AuditHead, entry);
  return [
    {
      name: 'append-audit',
      text: `INSERT INTO parley.audit (seq, ts, type, actor_json, address, body_json, digest)
        VALUES ($1, $2, $3, $4, $5, $6, $7)`,
      values: [row.seq, row.ts, row.type, row.actor_json, row.address, row.body_json, row.digest],
    },
    {
      name: 'move-audit-head',
      text: 'UPDATE parley.audit_head SET seq = $1, digest = $2',
      values: [row.seq, row.digest],
    },
  ];
}

export function transactAudited<T>(
  db: Database,
  look: readonly Statement[],
  decide: (...answers: readonly QueryResult[]) => AuditedDecision<T>,
): Promise<T> {
  return db.transact<T>([LOCK_AUDIT, ...look], (head, ...answers): Decision<T> => {
    const decision = decide(...answers);
    if ('leave' in decision) return decision;
    const { write, answer, entry } = decision;
    return { write: entry === null ? write : [...write, ...auditStatements(head, entry)], answer };
  });
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

export async function readAuditHead(db: Reader): Promise<AuditHead> {
  const [head] = await db.read<AuditHead>({
    name: 'audit-head',
    text: 'SELECT seq, digest FROM parley.audit_head',
    values: [],
  });
  return head ?? { seq: 0, digest: '' };
}
