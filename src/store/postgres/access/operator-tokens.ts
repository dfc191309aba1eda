// The operator tokens that all hosts of a database accept: one row per data directory, with the SHA-256 of the token in
// its file. The token itself never reaches the database. Each new or replaced row is recorded in the administrative
// journal in the same transaction, and all hosts are notified. Tokens of live hosts are read together with them.
import type { QueryResult } from 'pg';
import type { AuditTrace } from '../../audit.js';
import { forgetTokenStatements, NOTIFY_ACCESS } from './access.js';
import { transactAudited, transactRevoking, type AuditedDecision } from './audit.js';
import type { Database, Reader, Statement } from '../connection/database.js';
import { fromText, toText } from '../connection/text.js';

export interface OperatorRow {
  readonly sha256: string;
  // Identifies the data directory: the content of its file `site`.
  readonly directory: string;
  // The account that registered it.
  readonly user: string;
  // Registered within the last day.
  readonly isRecent: boolean;
}

export interface Registration {
  readonly directory: string;
  readonly user: string;
  readonly host: string;
  // Reads the file. Called inside the transaction: a token is written to its file before it is registered, so the
  // last registration stores the newest one.
  readSha256(): string;
}

// An older row is written again.
const IS_RECENT = `registered_at > clock_timestamp() - interval '1 day'`;
// Directories that were not seen for this long lose their row.
const KEPT_DAYS = 90;
// Every host reads all rows every two seconds. Beyond this many, those not seen for the longest time are deleted.
const MOST_ROWS = 1000;

export interface KnownHashes {
  readonly operators: readonly OperatorRow[];
  // Hashes of the tokens of live hosts.
  readonly hosts: readonly string[];
}

// One statement, because every host reads it every two seconds.
export async function listKnownHashes(db: Reader): Promise<KnownHashes> {
  const rows = await db.read<OperatorRow | { sha256: string; directory: null }>({
    name: 'list-known-hashes',
    text: `SELECT sha256, directory, user_name AS "user", ${IS_RECENT} AS "isRecent" FROM parley.operator_tokens
      UNION ALL SELECT token_sha256, NULL, NULL, NULL FROM parley.hosts
        WHERE lease_until > clock_timestamp() AND token_sha256 <> ''
      ORDER BY sha256`,
    values: [],
  });
  return {
    operators: rows.flatMap((row) => (row.directory === null ? [] : [{ ...row, user: fromText(row.user) }])),
    hosts: rows.flatMap(({ sha256, directory }) => (directory === null ? [sha256] : [])),
  };
}

// Makes the token in the directory's file valid on all hosts, and the previous token of the directory invalid. Writes
// nothing if it was registered within the last day.
export async function registerOperator(db: Database, registration: Registration, trace: AuditTrace): Promise<void> {
  if (await isRecent(db, registration)) return;
  const { look, decide } = replacement(registration, trace, null);
  await transactAudited<void>(db, look, decide);
}

async function isRecent(db: Reader, { directory, readSha256 }: Registration): Promise<boolean> {
  const rows = await db.read({
    name: 'recent-operator',
    text: `SELECT FROM parley.operator_tokens WHERE directory = $1 AND sha256 = $2 AND ${IS_RECENT}`,
    values: [directory, readSha256()],
  });
  return rows.length === 1;
}

// Does the same after the file was replaced, even if it cannot be recorded. Returns why not, or null. `old`: a hash
// that must not stay valid, whichever directory registered it.
export async function rotateOperator(
  db: Database,
  registration: Registration,
  { trace, old }: { readonly trace: AuditTrace; readonly old: string | null },
): Promise<unknown> {
  const { look, decide } = replacement(registration, trace, old);
  return (await transactRevoking<void>(db, look, decide)).problem;
}

interface Replacement {
  readonly look: readonly Statement[];
  decide(rows?: QueryResult): AuditedDecision<void>;
}

function replacement(registration: Registration, trace: AuditTrace, old: string | null): Replacement {
  const look = {
    name: 'operator-of-directory',
    text: 'SELECT sha256 FROM parley.operator_tokens WHERE directory = $1 FOR UPDATE',
    values: [registration.directory],
  };
  const body = { operator: true, host: registration.host };
  const decide = (rows?: QueryResult): AuditedDecision<void> => {
    const before = (rows?.rows[0] as { readonly sha256: string } | undefined)?.sha256 ?? null;
    const sha256 = registration.readSha256();
    const ended = [...new Set([before, old])].filter((hash) => hash !== null && hash !== sha256) as string[];
    return {
      write: [...ended.flatMap(endStatements), insertStatement(registration, sha256), PRUNE, NOTIFY_ACCESS],
      answer: undefined,
      entry: before === sha256 ? null : { ...trace, type: ended.length > 0 ? 'token.rotated' : 'token.added', body },
    };
  };
  return { look: [look], decide };
}

function endStatements(sha256: string): Statement[] {
  const remove = {
    name: 'remove-operator',
    text: 'DELETE FROM parley.operator_tokens WHERE sha256 = $1',
    values: [sha256],
  };
  return [remove, ...forgetTokenStatements(sha256)];
}

// Two directories may have the same token if one is a copy: then they share the row.
function insertStatement({ directory, user, host }: Registration, sha256: string): Statement {
  return {
    name: 'register-operator',
    text: `INSERT INTO parley.operator_tokens (sha256, directory, user_name, host_name, created_at, registered_at)
      VALUES ($1, $2, $3, $4, clock_timestamp(), clock_timestamp())
      ON CONFLICT (sha256) DO UPDATE SET host_name = EXCLUDED.host_name, registered_at = EXCLUDED.registered_at`,
    values: [sha256, directory, toText(user), toText(host)],
  };
}

// Sessions and codes of deleted rows are refused, and deleted when they expire.
const PRUNE: Statement = {
  name: 'prune-operators',
  text: `WITH dropped AS (
      DELETE FROM parley.operator_tokens
      WHERE registered_at < clock_timestamp() - $1::double precision * interval '1 day' OR sha256 IN
        (SELECT sha256 FROM parley.operator_tokens ORDER BY registered_at DESC, sha256 OFFSET $2)
      RETURNING sha256)
    DELETE FROM parley.token_uses USING dropped WHERE token_sha256 = dropped.sha256`,
  values: [KEPT_DAYS, MOST_ROWS],
};
