// The administrative journal: who signed in, changed tokens, deleted runs, changed settings or downloaded archives.
// Rows are only appended. Each row's digest covers the digest before it, and the head row names the last one, so a
// changed, removed or reordered row is detected. A journal whose head is missing, or that has rows after its head, is
// continued after a row that records the break.
import type { Phrase } from '../kernel/fill-template.js';
import { createHash } from 'node:crypto';
import type { JsonObject } from '../kernel/json.js';
import { createMessages, type Message } from '../kernel/message.js';
import { refusal, type RequestError } from '../run/request-error.js';
import { FIRST_DIGEST } from './digest.js';
import type { Actor } from './store.js';
import { isCount } from './stored-shapes.js';

const AUDIT_TYPES = [
  'sign_in',
  'sign_in.failed',
  'sign_out',
  'session.ended',
  'code.created',
  'token.added',
  'token.removed',
  'token.rotated',
  'run.deleted',
  'settings.changed',
  'archive.downloaded',
  'journal.broken',
] as const;
export type AuditType = (typeof AUDIT_TYPES)[number];

// Who did something, when, and from which network address; a null address means a command on this machine.
export interface AuditTrace {
  readonly at: number;
  readonly actor: Actor | null;
  readonly address: string | null;
}

// The actor of a deletion without a named person.
export const UNTRACED: AuditTrace = { at: 0, actor: null, address: null };

export interface AuditEntry extends AuditTrace {
  readonly type: AuditType;
  readonly body: JsonObject;
}

// A row as stored. The JSON columns stay text: the digest covers their exact characters.
export interface AuditRow {
  readonly seq: number;
  readonly ts: number;
  readonly type: string;
  readonly actor_json: string | null;
  readonly address: string | null;
  readonly body_json: string;
  readonly digest: string;
}

export interface AuditHead {
  readonly seq: number;
  readonly digest: string;
}

// A head with damaged values counts as missing.
export function toAuditHead(row: unknown): AuditHead | null {
  const { seq, digest } = (row ?? {}) as Partial<Record<keyof AuditHead, unknown>>;
  return isCount(seq) && typeof digest === 'string' ? { seq, digest } : null;
}

// Rows with a larger number were not written by Parley; appending continues below, so that there is always a next
// number.
export const MOST_ROWS = 2 ** 52;

// The rows that append an entry; `last` is the largest number of a row below MOST_ROWS. If the head does not name that
// row, a row that records the break comes first. It continues the chain of the head, so the rows between do not fit in.
export function nextAuditRows(head: AuditHead | null, last: number, entry: AuditEntry): AuditRow[] {
  if (head !== null && last <= head.seq) return [nextAuditRow(head, entry)];
  const problem =
    head === null
      ? 'the head of the journal was missing'
      : `rows ${head.seq + 1} to ${last} were not written by Parley`;
  const marker = nextAuditRow(
    { seq: Math.max(last, 0), digest: head?.digest ?? '' },
    { at: entry.at, actor: null, address: null, type: 'journal.broken', body: { problem } },
  );
  return [marker, nextAuditRow(marker, entry)];
}

// Thrown when a revocation has taken effect but could not be recorded.
export function unrecorded(what: Phrase, cause: unknown): RequestError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return refusal('DATA_DIR_UNUSABLE.audit', { act: what, reason });
}

function nextAuditRow({ seq, digest }: AuditHead, { at, actor, address, type, body }: AuditEntry): AuditRow {
  const row = {
    seq: seq + 1,
    ts: at,
    type,
    actor_json: actor && JSON.stringify(actor),
    address,
    body_json: JSON.stringify(body),
  };
  return { ...row, digest: auditDigest(digest, row) };
}

export function auditDigest(
  before: string,
  { seq, ts, type, actor_json: actor, address, body_json: body }: Omit<AuditRow, 'digest'>,
): string {
  return createHash('sha256')
    .update(before)
    .update('\n')
    .update(JSON.stringify([seq, ts, type, actor, address, body]))
    .digest('hex');
}

// The body of a tombstone: the deleted run and the end of its journal.
export function tombstoneOf(run: {
  readonly run_id: string;
  readonly rasp_seq: number;
  readonly digest: string;
}): JsonObject {
  return { run_id: run.run_id, rasp_seq: run.rasp_seq, digest: run.digest };
}

export interface AuditReader {
  // Rows after this seq, in order.
  listAudit(after: number, limit: number): Promise<AuditRow[]>;
  // Null: the head is missing or damaged.
  auditHead(): Promise<AuditHead | null>;
}

export interface AuditVerdict {
  readonly ok: boolean;
  readonly rows: number;
  // The problem, with the seq of the first row that does not match; null if there is none.
  readonly problem: string | null;
  // The same as a message; absent if there is none.
  readonly message?: Message;
}

export const AUDIT_PROBLEMS = {
  'audit.no_head': 'the head is missing: rows at the end may have been removed',
  'audit.before_first': 'row {row} is before the first row',
  'audit.missing': 'row {row} is missing',
  'audit.missing_of': 'row {row} is missing: the head says that there are {count}',
  'audit.break': 'row {row} records a break of the journal: {body}',
  'audit.changed': 'row {row} was changed, or the row before it was',
  'audit.other_head': 'row {row} is not the one that the head names',
  'audit.beyond_head': 'row {row} is not covered by the head, which says that there are {count}',
} as const;

const problemText = createMessages(AUDIT_PROBLEMS);

function broken(rows: number, message: Message): AuditVerdict {
  return { ok: false, rows, problem: message.text, message };
}

const PAGE = 1000;

// Checks the rows up to the current head; rows that are appended meanwhile are not an error. With `last`, checks only
// the newest rows, each against the digest before it: cheap for a journal of any length.
export async function verifyAudit(reader: AuditReader, last = Infinity): Promise<AuditVerdict> {
  const head = await reader.auditHead();
  if (head === null) return broken(0, problemText('audit.no_head'));
  if (last === Infinity) {
    const [lowest] = await reader.listAudit(Number.MIN_SAFE_INTEGER, 1);
    if (lowest && lowest.seq < 1) return broken(0, problemText('audit.before_first', { row: lowest.seq }));
  }
  const first = Math.max(0, head.seq - last);
  let before: AuditHead = { seq: 0, digest: FIRST_DIGEST };
  if (first > 0) {
    const [row] = await reader.listAudit(first - 1, 1);
    if (row?.seq !== first) return broken(0, problemText('audit.missing', { row: first }));
    before = row;
  }
  let rows = 0;
  while (before.seq < head.seq) {
    const page = await reader.listAudit(before.seq, Math.min(PAGE, head.seq - before.seq));
    if (page.length === 0)
      return broken(rows, problemText('audit.missing_of', { row: before.seq + 1, count: head.seq }));
    for (const row of page) {
      if (row.seq !== before.seq + 1) return broken(rows, problemText('audit.missing', { row: before.seq + 1 }));
      if (row.type === 'journal.broken')
        return broken(rows, problemText('audit.break', { row: row.seq, body: row.body_json }));
      if (auditDigest(before.digest, row) !== row.digest)
        return broken(rows, problemText('audit.changed', { row: row.seq }));
      before = row;
      rows += 1;
    }
  }
  if (before.digest !== head.digest) return broken(rows, problemText('audit.other_head', { row: head.seq }));
  const [extra] = await reader.listAudit(head.seq, 1);
  // The row may have been appended after the head was read.
  if (extra && extra.seq > ((await reader.auditHead())?.seq ?? 0))
    return broken(rows, problemText('audit.beyond_head', { row: extra.seq, count: head.seq }));
  return { ok: true, rows, problem: null };
}
