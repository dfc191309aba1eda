// Inserts and deletes the rows of a run, within the transaction of the caller, who also appends and merges its journal.
import { toTimestamp } from '../../kernel/clock.js';
import { isTerminal } from '../../run/statechart.js';
import { tombstoneOf, UNTRACED } from '../audit.js';
import { FIRST_DIGEST } from '../digest.js';
import type { RunRow } from '../rows.js';
import type { DeleteOutcome, DeleteRunOptions, NewRun } from '../store.js';
import { appendAudit } from './access.js';
import { forgetGivenUp } from './deliveries.js';
import { findAtWork, findInHome } from './find-runs.js';
import type { Database } from './open-database.js';
import { keepTurns } from './turn-counts.js';

type Deletable = Pick<RunRow, 'request_id' | 'status' | 'rasp_seq' | 'digest'> & {
  readonly cwd: string | null;
  readonly home: string | null;
  readonly continues: number;
};

export function insertRun(db: Database, run: NewRun): void {
  db.prepare(`INSERT INTO runs (run_id, request_id, request_digest, engine, spec_json, cwd, home, continues,
      status, attempt_number, epoch, created_at, updated_at, queued_at, rasp_seq, fcmp_seq, ts, digest, crashes)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'queued', 1, 0, ?, ?, ?, 0, 0, 0, ?, COALESCE((SELECT crashes FROM runs
      WHERE run_id = ?), 0))`).run(
    run.run_id,
    run.request_id,
    run.request_digest,
    run.spec.engine,
    JSON.stringify(run.spec),
    run.spec.cwd,
    run.spec.home,
    Number(run.spec.continue_from !== undefined),
    run.created_at,
    run.created_at,
    run.created_at,
    FIRST_DIGEST,
    run.crashes_of ?? null,
  );
  for (const [key, value] of Object.entries(run.spec.labels))
    db.prepare('INSERT INTO run_labels (run_id, key, value) VALUES (?, ?, ?)').run(run.run_id, key, value);
  // The database of a predecessor may have a row for this request, of a run that was never stored here: the new run
  // replaces it.
  db.prepare(
    'INSERT OR REPLACE INTO request_interactive_runtime (request_id, effective_session_timeout_sec, ' +
      'session_handle_json, updated_at) VALUES (?, ?, ?, ?)',
  ).run(
    run.request_id,
    run.session_timeout_sec,
    run.handle === null ? null : JSON.stringify(run.handle),
    toTimestamp(run.created_at),
  );
}

// Reads columns only: a run whose JSON is damaged can be deleted.
export function deleteRun(
  db: Database,
  runId: string,
  { damaged = false, trace = UNTRACED }: DeleteRunOptions,
): DeleteOutcome {
  const run = db
    .prepare('SELECT request_id, status, cwd, home, continues, rasp_seq, digest FROM runs WHERE run_id = ?')
    .get(runId) as Deletable | undefined;
  if (!run) return 'unknown_run';
  if (!damaged && !isTerminal(run.status)) return 'not_ended';
  // Runs that continue it use its home and its session.
  if (run.continues !== 1 && findInHome(db, run.home, runId)) return 'session_in_use';
  // A fork has its own home, but works in this folder.
  if (run.cwd?.includes(runId) && findAtWork(db, run.cwd, runId)) return 'session_in_use';
  keepTurns(db, runId);
  db.prepare('DELETE FROM request_interactive_runtime WHERE request_id = ?').run(run.request_id);
  db.prepare('DELETE FROM runs WHERE run_id = ?').run(runId);
  forgetGivenUp(db, runId);
  appendAudit(db, {
    ...trace,
    type: 'run.deleted',
    body: tombstoneOf({ run_id: runId, rasp_seq: run.rasp_seq, digest: run.digest }),
  });
  return 'deleted';
}
