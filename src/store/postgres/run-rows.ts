// Loads runs from the database, and finds them by request, folder, home, id and filter.
import { toRun, type RunRow } from '../rows.js';
import { QUESTIONS, type RunSource } from '../salvage.js';
import type { EndedFilter, EndedRun, RunFilter, RunRecord } from '../store.js';
import { buildSelect } from './connection/build-select.js';
import type { Database, Statement } from './connection/database.js';
import { fromText, pairKey, toText } from './connection/text.js';

// Lists each column: a later version may add columns while this one is running, and its prepared statements must stay
// valid.
export const SELECT_RUNS = `SELECT run_id, request_id, request_digest, spec_json, status, attempt_number, epoch,
  error_json, result_json, cancel_requested_json, waited_ms, cardinality(crashed_by) AS crashes,
  created_at, updated_at, rasp_seq, fcmp_seq, ts, digest FROM parley.runs`;

export function toRunRecord(row: RunRow): RunRecord {
  return { ...toRun(row), request_id: fromText(row.request_id) };
}

export async function loadRun(db: Database, runId: string): Promise<RunRecord | null> {
  const [row] = await db.read<RunRow>({ name: 'load-run', text: `${SELECT_RUNS} WHERE run_id = $1`, values: [runId] });
  return row ? toRunRecord(row) : null;
}

// The columns of a run and the ids of its last questions, whatever they contain.
export async function loadForSalvage(
  db: Database,
  runId: string,
): Promise<Pick<RunSource, 'row' | 'questionIds'> | null> {
  const [row] = await db.read<RunRow & { engine: string }>({
    name: 'salvage-run',
    text: `${SELECT_RUNS.replace('SELECT', 'SELECT engine,')} WHERE run_id = $1`,
    values: [runId],
  });
  if (!row) return null;
  const questions = await db.read<{ interaction_id: string }>({
    name: 'salvage-questions',
    text: `SELECT interaction_id FROM parley.interactions WHERE run_id = $1
      ORDER BY interaction_id DESC LIMIT ${QUESTIONS}`,
    values: [runId],
  });
  return {
    row: { ...row, request_id: fromText(row.request_id) },
    questionIds: questions.map(({ interaction_id: id }) => id),
  };
}

export async function loadRequest(db: Database, requestId: string): Promise<{ run: RunRecord; digest: string } | null> {
  const [row] = await db.read<RunRow>({
    name: 'load-request',
    text: `${SELECT_RUNS} WHERE request_id = $1`,
    values: [toText(requestId)],
  });
  return row ? { run: toRunRecord(row), digest: row.request_digest } : null;
}

export async function findInHome(db: Database, home: string, except: string): Promise<string | null> {
  const [row] = await db.read<{ run_id: string }>({
    name: 'find-in-home',
    text: 'SELECT run_id FROM parley.runs WHERE home = $1 AND run_id <> $2 ORDER BY run_id LIMIT 1',
    values: [toText(home), except],
  });
  return row?.run_id ?? null;
}

export async function findAtWork(db: Database, cwd: string): Promise<string | null> {
  const [row] = await db.read<{ run_id: string }>({
    name: 'find-at-work',
    text: `SELECT run_id FROM parley.runs WHERE cwd = $1 AND status IN ('queued', 'running', 'waiting_user')
      ORDER BY run_id LIMIT 1`,
    values: [toText(cwd)],
  });
  return row?.run_id ?? null;
}

export async function listRuns(db: Database, filter: RunFilter): Promise<RunRecord[]> {
  return (await db.read<RunRow>(selectRuns('list-runs', SELECT_RUNS, filter))).map(toRunRecord);
}

export async function listRunIds(db: Database, filter: RunFilter): Promise<string[]> {
  return ids(db, selectRuns('list-run-ids', 'SELECT run_id FROM parley.runs', filter));
}

export async function listEnded(db: Database, { before, after, limit }: EndedFilter): Promise<EndedRun[]> {
  const rows = await db.read<EndedRun>({
    name: 'list-ended',
    text: `SELECT run_id, updated_at, home, continues FROM parley.runs
      WHERE status IN ('succeeded', 'failed', 'canceled') AND updated_at < $1::bigint
        AND (updated_at, run_id) > ($2::bigint, $3::text)
      ORDER BY updated_at, run_id LIMIT $4`,
    values: [before, after?.updated_at ?? 0, after?.run_id ?? '', limit],
  });
  return rows.map(({ run_id: id, updated_at: at, home, continues }) => ({
    run_id: id,
    updated_at: at,
    home: home === null ? null : fromText(home),
    continues,
  }));
}

export async function listByTail(db: Database, tails: readonly string[]): Promise<string[]> {
  const text = 'SELECT run_id FROM parley.runs WHERE right(run_id, 6) = ANY($1) ORDER BY run_id DESC';
  const values = [[...new Set(tails)]];
  return ids(db, { name: 'list-by-tail', text, values });
}

export async function listByPrefix(db: Database, prefix: string, limit: number): Promise<string[]> {
  const text = 'SELECT run_id FROM parley.runs WHERE run_id >= $1 AND run_id < $2 ORDER BY run_id DESC LIMIT $3';
  const values = [prefix, `${prefix}\uffff`, limit];
  return ids(db, { name: 'list-by-prefix', text, values });
}

export function selectRuns(
  name: string,
  select: string,
  { status, engine, label, before, limit }: RunFilter,
): ReturnType<typeof buildSelect> {
  return buildSelect(name, {
    select,
    conditions: [
      status !== undefined && ['s', 'status = ?', status],
      engine !== undefined && ['e', 'engine = ?', engine],
      label !== undefined && [
        'l',
        'run_id IN (SELECT run_id FROM parley.run_labels WHERE pair = ?)',
        pairKey(label.key, label.value),
      ],
      before !== undefined && ['b', 'run_id < ?', before],
    ],
    rest: ['ORDER BY run_id DESC LIMIT ?', limit],
  });
}

export async function listQueued(db: Database, limit: number): Promise<string[]> {
  return ids(db, {
    name: 'list-queued',
    text: `SELECT run_id FROM parley.runs WHERE status = 'queued' ORDER BY queued_at, run_id LIMIT $1`,
    values: [limit],
  });
}

// Lists running runs whose owner has no valid lease.
export async function listOwnedByDead(db: Database, limit: number): Promise<string[]> {
  return ids(db, {
    name: 'list-owned-by-dead',
    text: `SELECT run_id FROM parley.runs AS run WHERE status = 'running'
    AND NOT EXISTS (SELECT FROM parley.hosts WHERE host_id = run.owner AND lease_until > clock_timestamp())
      ORDER BY run_id LIMIT $1`,
    values: [limit],
  });
}

async function ids(db: Database, statement: Statement): Promise<string[]> {
  return (await db.read<{ run_id: string }>(statement)).map((row) => row.run_id);
}
