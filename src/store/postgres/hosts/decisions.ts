// Questions that the policy decides when nobody answered in time, for hosts that share a database. A host claims
// expired questions for a few seconds, so that the others leave them alone; committing the decision is what decides a
// question, and that happens once however many hosts try. All times are those of the database. Each statement reads the
// head of the index pending_by_decision, so its cost does not depend on how many questions wait.
import { readableInteractions, type InteractionRow } from '../../rows.js';
import type { InteractionRecord } from '../../store.js';
import type { Database } from '../connection/database.js';
import { isAlive } from './host-lease.js';
import { SELECT_INTERACTIONS } from '../interactions.js';

// The claim of a host that dies expires after this time; deciding one question takes a few statements.
const CLAIM_MS = 10_000;
// statement_timestamp() and not clock_timestamp(): the planner uses the index only for a value that is fixed per
// statement.
const NOW = '(extract(epoch FROM statement_timestamp()) * 1000)::bigint';
const DECIDED_FROM = 'COALESCE(retry_at, due_at)';

// Claims up to `limit` expired questions, the longest overdue first. Skips rows that another host is claiming right
// now, and questions whose resident process belongs to another live host: only that host can end the process.
export function claimDecisions(db: Database, host: string | null, limit: number): Promise<InteractionRow[]> {
  // Safe to repeat after a lost connection: a claim that was made twice only delays the question by CLAIM_MS.
  return db.read<InteractionRow>({
    name: 'claim-decisions',
    text: `UPDATE parley.interactions SET retry_at = ${NOW} + ${CLAIM_MS} WHERE interaction_id IN (
        SELECT interaction_id FROM parley.interactions AS question
        WHERE state = 'pending' AND decides AND ${DECIDED_FROM} <= ${NOW}
          AND NOT EXISTS (SELECT FROM parley.runs AS run WHERE run.run_id = question.run_id
            AND run.resident IS DISTINCT FROM $1::text AND ${isAlive('run.resident')})
        ORDER BY ${DECIDED_FROM}, interaction_id LIMIT $2 FOR UPDATE SKIP LOCKED)
      RETURNING interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at, decides,
        resolution_json`,
    values: [host, limit],
  });
}

// Leaves a question alone for a while, for one that cannot be decided because its data is damaged.
export async function postponeDecision(db: Database, interactionId: string, ms: number): Promise<void> {
  await db.read({
    name: 'postpone-decision',
    text: `UPDATE parley.interactions SET retry_at = ${NOW} + $2::bigint
      WHERE interaction_id = $1 AND state = 'pending' RETURNING interaction_id`,
    values: [interactionId, ms],
  });
}

export interface NextDecision {
  // In the time of the database.
  readonly at: number;
  // Zero or less: the question is due.
  readonly inMs: number;
}

export async function findNextDecision(db: Database): Promise<NextDecision | null> {
  const [row] = await db.read<{ at: number; in_ms: number }>({
    name: 'next-decision-at',
    text: `SELECT ${DECIDED_FROM} AS at, ${DECIDED_FROM} - ${NOW} AS in_ms FROM parley.interactions
      WHERE state = 'pending' AND decides ORDER BY ${DECIDED_FROM}, interaction_id LIMIT 1`,
    values: [],
  });
  return row ? { at: row.at, inMs: row.in_ms } : null;
}

// How many rows are read at once to find one that is not damaged.
const PAGE = 20;

// The question that is decided next, for callers that only read; damaged ones are skipped.
export async function nextDecision(db: Database, except: readonly string[]): Promise<InteractionRecord | null> {
  for (let after: InteractionRow | undefined; ;) {
    const rows = await listDecisions(db, after);
    for (const interaction of readableInteractions(rows))
      if (!except.includes(interaction.interaction_id)) return interaction;
    if (rows.length < PAGE) return null;
    after = rows.at(-1);
  }
}

function listDecisions(db: Database, after: InteractionRow | undefined): Promise<InteractionRow[]> {
  const rest =
    after === undefined
      ? ''
      : `AND (${DECIDED_FROM}, interaction_id) > (
    SELECT ${DECIDED_FROM}, interaction_id FROM parley.interactions WHERE interaction_id = $1)`;
  return db.read<InteractionRow>({
    name: after === undefined ? 'first-decisions' : 'more-decisions',
    text:
      `${SELECT_INTERACTIONS} WHERE state = 'pending' AND decides ${rest} ORDER BY ${DECIDED_FROM}, ` +
      `interaction_id LIMIT ${PAGE}`,
    values: after === undefined ? [] : [after.interaction_id],
  });
}
