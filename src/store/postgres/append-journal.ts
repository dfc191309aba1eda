// Adds a flush to a run's journal: one row per protocol, holding the lines exactly as they are sent. A change that is
// only a flush is one statement, which compares, inserts, moves the heads and notifies other hosts.
import type { JournalFlush, RunAppend } from '../store.js';
import { eventChannel, type Composition } from './connection/compose.js';
import type { Statement } from './connection/database.js';

const COLUMNS = '(run_id, protocol, epoch, seq_from, seq_to, ts_from, ts_to, body)';

// Call it only in a transaction that has locked the run and compared its head. The epoch is that of the writer.
export function addSegments(
  to: Composition,
  runId: string,
  epoch: number,
  { rasp, fcmp, firstTs, lastTs }: JournalFlush,
): void {
  const row = (
    sign: string,
    protocol: string,
    { firstSeq, lastSeq, bytes }: { firstSeq: number; lastSeq: number; bytes: Buffer },
    from: number,
  ) =>
    to.add(
      sign,
      (param) =>
        `INSERT INTO parley.segments ${COLUMNS}
          VALUES (${param(runId, 'text')}, '${protocol}', ${param(epoch, 'bigint')}, ${param(firstSeq, 'bigint')},
            ${param(lastSeq, 'bigint')}, ${param(from, 'bigint')}, ${param(lastTs, 'bigint')},
            ${param(bytes, 'bytea')})`,
    );
  row('r', 'rasp', rasp, firstTs);
  if (fcmp) row('f', 'fcmp', fcmp, fcmp.firstTs);
}

// If another transaction has changed the row meanwhile, PostgreSQL compares the new version, and the digest is computed
// from that. The lease may be read as it was before such a wait; then no row is returned, and the slower path checks
// again.
const FLUSH = `WITH run AS (
  UPDATE parley.runs
  SET rasp_seq = $5::bigint, fcmp_seq = COALESCE($10::bigint, fcmp_seq), ts = $7::bigint, updated_at = $12::bigint,
    last_commit = $14::uuid,
    digest = encode(sha256(convert_to(digest || E'\\n', 'UTF8') || $8::bytea), 'hex')
  WHERE run_id = $1::text AND epoch = $2::bigint AND status = $3::text AND rasp_seq = $4::bigint AND ts <= $6::bigint
    AND ($9::bigint IS NULL OR fcmp_seq + 1 = $9::bigint)
    AND ($15::text IS NULL OR status <> 'running'
      OR (owner = $15::text AND EXISTS (SELECT FROM parley.hosts
      WHERE host_id = $15::text AND lease_until > clock_timestamp())))
  RETURNING run_id, rasp_seq, fcmp_seq, ts, digest
), rasp AS (
  INSERT INTO parley.segments ${COLUMNS}
  SELECT run_id, 'rasp', $2::bigint, $4::bigint + 1, $5::bigint, $6::bigint, $7::bigint, $8::bytea FROM run
), fcmp AS (
  INSERT INTO parley.segments ${COLUMNS}
  SELECT run_id, 'fcmp', $2::bigint, $9::bigint, $10::bigint, $11::bigint, $7::bigint, $13::bytea FROM run
  WHERE $9::bigint IS NOT NULL
)
SELECT rasp_seq, fcmp_seq, ts, digest, pg_notify($17::text, $16::text) FROM run`;

export type LinesOnly = RunAppend & { readonly lines: JournalFlush };

export function isLinesOnly(append: RunAppend): append is LinesOnly {
  const { before, after, epoch, lines, create, deliveries = [] } = append;
  return (
    before === after &&
    epoch === undefined &&
    create === undefined &&
    deliveries.length === 0 &&
    lines?.rasp.firstSeq === append.expect.rasp_seq + 1
  );
}

// Returns the new heads, or no row.
export function flushStatement(append: LinesOnly, commitId: string, host: string | null, hint: string): Statement {
  const {
    run_id: runId,
    expect,
    now,
    before,
    lines: { rasp, fcmp, firstTs, lastTs },
  } = append;
  return {
    name: 'flush',
    text: FLUSH,
    values: [
      runId,
      expect.epoch,
      before.status,
      expect.rasp_seq,
      rasp.lastSeq,
      firstTs,
      lastTs,
      rasp.bytes,
      fcmp?.firstSeq ?? null,
      fcmp?.lastSeq ?? null,
      fcmp?.firstTs ?? null,
      now,
      fcmp?.bytes ?? null,
      commitId,
      host,
      hint,
      eventChannel(runId),
    ],
  };
}
