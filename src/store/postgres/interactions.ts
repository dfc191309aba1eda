// Questions: stored and resolved within a change, and found later.
import { readableInteractions, toInteraction, type InteractionRow } from '../rows.js';
import type { FoldedQuestion } from '../../run/run-fold.js';
import type { ResolvedQuestion } from '../row-changes.js';
import type { InteractionRecord, PendingFilter } from '../store.js';
import { readState } from '../totals.js';
import type { Composition } from './connection/compose.js';
import { buildSelect } from './connection/build-select.js';
import type { Database, Statement } from './connection/database.js';
import { pairKey, toText } from './connection/text.js';

export function addAsk(
  to: Composition,
  ask: FoldedQuestion,
  { runId, engine }: { readonly runId: string; readonly engine: string },
): void {
  to.add(
    'a',
    (param) => `INSERT INTO parley.interactions (interaction_id, run_id, attempt_number, question_json, state, asked_at,
      due_at, decides, engine)
    VALUES (${param(ask.interaction_id, 'text')}, ${param(runId, 'text')}, ${param(ask.attempt_number, 'integer')},
      ${param(JSON.stringify(ask.question), 'text')}, 'pending',
      ${param(ask.asked_at, 'bigint')}, ${param(ask.due_at, 'bigint')}, ${param(ask.decides, 'boolean')},
      ${param(engine, 'text')})`,
  );
}

// Only a pending question of this run can be resolved, and only once.
export function resolveStatement(
  runId: string,
  { interaction_id: id, state, resolution }: ResolvedQuestion,
): Statement {
  return {
    name: 'resolve',
    text: `UPDATE parley.interactions SET state = $3, resolution_json = $4, idempotency_key = $5
      WHERE interaction_id = $1 AND run_id = $2 AND state = 'pending'`,
    values: [
      id,
      runId,
      state,
      JSON.stringify(resolution),
      resolution.idempotency_key === null ? null : toText(resolution.idempotency_key),
    ],
  };
}

export const SELECT_INTERACTIONS =
  'SELECT interaction_id, run_id, attempt_number, question_json, state, asked_at, due_at, decides, ' +
  'resolution_json FROM parley.interactions';
const FINDS = {
  'by-id': 'interaction_id = $1',
  'by-key': 'run_id = $1 AND idempotency_key = $2 LIMIT 1',
  pending: `run_id = $1 AND state = 'pending'`,
  latest: 'run_id = $1 ORDER BY attempt_number DESC, asked_at DESC, interaction_id DESC LIMIT 1',
} as const;

export async function findInteraction(
  db: Database,
  by: keyof typeof FINDS,
  ...values: string[]
): Promise<InteractionRecord | null> {
  const [row] = await db.read<InteractionRow>({
    name: `interaction-${by}`,
    text: `${SELECT_INTERACTIONS} WHERE ${FINDS[by]}`,
    values,
  });
  return row ? toInteraction(row) : null;
}

export async function listInteractions(db: Database, runId: string): Promise<InteractionRecord[]> {
  return (
    await db.read<InteractionRow>({
      name: 'interactions-of-run',
      text: `${SELECT_INTERACTIONS} WHERE run_id = $1 ORDER BY interaction_id`,
      values: [runId],
    })
  ).map(toInteraction);
}

// Returns up to `limit` questions, however many damaged ones are skipped.
export async function listPending(db: Database, filter: PendingFilter): Promise<InteractionRecord[]> {
  const interactions: InteractionRecord[] = [];
  for (let { after } = filter; ;) {
    const rows = await db.read<InteractionRow>(
      selectPending('pending', SELECT_INTERACTIONS, { ...filter, ...(after ? { after } : {}) }),
    );
    for (const interaction of readableInteractions(rows))
      if (interactions.length < filter.limit) interactions.push(interaction);
    after = rows.at(-1);
    if (rows.length < filter.limit || interactions.length === filter.limit) return interactions;
  }
}

// Compares with the time in the row itself: a damaged time may not be an exact number, and the same page would be
// returned again.
const AFTER =
  '(asked_at, interaction_id) > (COALESCE((SELECT asked_at FROM parley.interactions WHERE interaction_id = ' +
  '?::text), ?::bigint), ?::text)';

export function selectPending(
  name: string,
  select: string,
  { engine, label, overdueAt, after, limit }: PendingFilter,
): Statement {
  return buildSelect(name, {
    select,
    conditions: [
      ['p', `state = 'pending'`],
      engine !== undefined && ['e', 'engine = ?', engine],
      label !== undefined && [
        'l',
        'run_id IN (SELECT run_id FROM parley.run_labels WHERE pair = ?)',
        pairKey(label.key, label.value),
      ],
      overdueAt !== undefined && ['o', 'due_at < ?', overdueAt],
      after !== undefined && ['a', AFTER, after.interaction_id, after.asked_at, after.interaction_id],
    ],
    rest: ['ORDER BY asked_at, interaction_id LIMIT ?', limit],
  });
}

export async function countPending(db: Database, now: number): Promise<{ pending: number; overdue: number }> {
  // One statement, so that both are of the same time.
  const [row] = await db.read<{ pending: number; overdue: number }>({
    name: 'count-pending',
    text: `SELECT
      (SELECT LEAST(sum(count), 4611686018427387904)::bigint FROM parley.totals
        WHERE subject = 'interactions' AND measure = 'pending') AS pending,
      (SELECT count(*) FROM parley.interactions WHERE state = 'pending' AND due_at < $1::bigint) AS overdue`,
    values: [now],
  });
  return {
    pending: readState([{ measure: 'pending', count: row?.pending ?? 0 }], 'pending'),
    overdue: row?.overdue ?? 0,
  };
}
