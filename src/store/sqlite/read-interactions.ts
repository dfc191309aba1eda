// Reads the questions of a run.
import { toInteraction, type InteractionRow } from '../rows.js';
import type { InteractionRecord } from '../store.js';
import type { Database } from './open-database.js';

// The idempotency key of the answer. A damaged answer has none.
export const KEY_OF_ANSWER = `iif(
  json_valid(resolution_json), json_extract(resolution_json, '$.idempotency_key'), NULL)`;
export const NEWEST_FIRST = 'ORDER BY attempt_number DESC, asked_at DESC, interaction_id DESC';

// The first row of the condition, which may end with an order.
export function loadInteraction(db: Database, condition: string, ...values: string[]): InteractionRecord | null {
  const row = db.prepare(`SELECT * FROM interactions WHERE ${condition}`).get(...values) as InteractionRow | undefined;
  return row ? toInteraction(row) : null;
}

export function listInteractions(db: Database, runId: string): InteractionRecord[] {
  const rows = db.prepare('SELECT * FROM interactions WHERE run_id = ? ORDER BY interaction_id').all(runId);
  return (rows as unknown as InteractionRow[]).map(toInteraction);
}
