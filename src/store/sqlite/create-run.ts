// Inserts the rows of a new run, within the transaction of the caller, who also appends its journal.
import { toTimestamp } from '../../kernel/clock.js';
import { FIRST_DIGEST } from '../digest.js';
import type { NewRun } from '../store.js';
import type { Database } from './open-database.js';

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
