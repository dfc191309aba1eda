// The rows that a change of a run sets beside its journal, within the transaction of the change.
import { toTimestamp } from '../../kernel/clock.js';
import type { Json } from '../../kernel/json.js';
import type { EngineSessionHandle } from '../../run/session-handle.js';
import type { RunChange } from '../store.js';
import type { Database } from './open-database.js';

// Columns that `set` does not name keep their values.
export function setColumns(
  db: Database,
  runId: string,
  { set, now }: { readonly set: NonNullable<RunChange['set']>; readonly now: number },
): void {
  const { status = null, attempt_number: attempt = null, epoch = null, error, result, cancel_requested: wish } = set;
  db.prepare(`UPDATE runs
    SET status = COALESCE(?, status), attempt_number = COALESCE(?, attempt_number), epoch = COALESCE(?, epoch),
      error_json = COALESCE(?, error_json), result_json = COALESCE(?, result_json), cancel_requested_json = COALESCE(?,
        cancel_requested_json),
      queued_at = CASE WHEN ? = 'queued' AND status <> 'queued' THEN ? ELSE queued_at END,
      at_work = COALESCE(? = 'running', at_work), crashes = iif(? = 'waiting_user', 0, crashes) WHERE run_id = ?`).run(
    status,
    attempt,
    epoch,
    toText(error),
    toText(result),
    toText(wish),
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

export function insertInteraction(db: Database, runId: string, ask: NonNullable<RunChange['ask']>): void {
  db.prepare(
    `INSERT INTO interactions (interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at,
      decides) VALUES (?, ?, ?, ?, 'pending', ?, ?, ?)`,
  ).run(
    ask.interaction_id,
    runId,
    ask.attempt_number,
    JSON.stringify(ask.question),
    ask.asked_at,
    ask.due_at,
    Number(ask.decides),
  );
}

// Only a pending one of this run can be resolved, and only once.
export function resolveInteraction(
  db: Database,
  runId: string,
  { interaction_id: id, state, resolution }: NonNullable<RunChange['resolve']>,
): boolean {
  const { changes } = db
    .prepare(
      `UPDATE interactions SET state = ?, resolution_json = ?
        WHERE interaction_id = ? AND run_id = ? AND state = 'pending'`,
    )
    .run(state, JSON.stringify(resolution), id, runId);
  if (Number(changes) !== 1) return false;
  db.prepare(
    'UPDATE runs SET waited_ms = waited_ms + MAX(0, ? - (SELECT asked_at FROM interactions WHERE interaction_id = ' +
      '?)) WHERE run_id = ?',
  ).run(resolution.at, id, runId);
  return true;
}

function toText(value: object | Json | undefined): string | null {
  return value === undefined || value === null ? null : JSON.stringify(value);
}
