// Writes the rows that a change of a run sets besides its journal, within the transaction of the change.
import { toTimestamp } from '../../kernel/clock.js';
import type { Json } from '../../kernel/json.js';
import type { EngineSessionHandle } from '../../run/session-handle.js';
import type { FoldedQuestion } from '../../run/run-fold.js';
import type { ResolvedQuestion, RunColumns } from '../row-changes.js';
import type { Database } from './open-database.js';

// `epoch` is the only column that does not follow from events: it changes with the owner of the run.
export function setColumns(
  db: Database,
  runId: string,
  { run, epoch, now }: { readonly run: RunColumns; readonly epoch: number | undefined; readonly now: number },
): void {
  const { status = null } = run;
  db.prepare(`UPDATE runs
    SET status = COALESCE(?, status), attempt_number = COALESCE(?, attempt_number), epoch = COALESCE(?, epoch),
      error_json = COALESCE(?, error_json), result_json = COALESCE(?, result_json),
      cancel_requested_json = COALESCE(?, cancel_requested_json), waited_ms = COALESCE(?, waited_ms),
      queued_at = CASE WHEN ? = 'queued' AND status <> 'queued' THEN ? ELSE queued_at END,
      at_work = COALESCE(? = 'running', at_work), crashes = iif(? = 'waiting_user', 0, crashes)
    WHERE run_id = ?`).run(
    status,
    run.attempt_number ?? null,
    epoch ?? null,
    toText(run.error),
    toText(run.result),
    toText(run.cancel_requested),
    run.waited_ms ?? null,
    status,
    now,
    status,
    status,
    runId,
  );
}

export function setHandle(
  db: Database,
  requestId: string,
  { handle, now }: { readonly handle: EngineSessionHandle; readonly now: number },
): void {
  db.prepare('UPDATE request_interactive_runtime SET session_handle_json = ?, updated_at = ? WHERE request_id = ?').run(
    JSON.stringify(handle),
    toTimestamp(now),
    requestId,
  );
}

export function insertInteraction(db: Database, runId: string, ask: FoldedQuestion): void {
  db.prepare(
    `INSERT INTO interactions (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at,
      decides, engine) VALUES (?, ?, ?, ?, 'pending', ?, ?, ?, (SELECT engine FROM runs WHERE run_id = ?))`,
  ).run(
    ask.interaction_id,
    runId,
    ask.attempt_number,
    JSON.stringify(ask.question),
    ask.asked_at,
    ask.due_at,
    Number(ask.decides),
    runId,
  );
}

// Only a pending question of this run can be resolved, and only once.
export function resolveInteraction(
  db: Database,
  runId: string,
  { interaction_id: id, state, resolution }: ResolvedQuestion,
): boolean {
  const { changes } = db
    .prepare(
      `UPDATE interactions SET state = ?, resolution_json = ?
        WHERE interaction_id = ? AND run_id = ? AND state = 'pending'`,
    )
    .run(state, JSON.stringify(resolution), id, runId);
  return Number(changes) === 1;
}

// Queued runs that a process was about to start.
const STARTING = `WHERE at_work = 1 AND status = 'queued'`;

export function hasStarting(db: Database): boolean {
  return db.prepare(`SELECT 1 FROM runs INDEXED BY runs_at_work ${STARTING} LIMIT 1`).get() !== undefined;
}

export function releaseStarting(db: Database): void {
  db.prepare(`UPDATE runs INDEXED BY runs_at_work SET at_work = 0 ${STARTING}`).run();
}

function toText(value: object | Json | undefined): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
