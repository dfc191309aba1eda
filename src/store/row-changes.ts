// The rows that change with a run's state: the difference of two folded states. Both SQL dialects write these rows and
// no others.
import { invariant } from '../kernel/invariant.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunState } from '../run/statechart.js';
import type { FoldedQuestion, FoldedRun, InteractionState, Resolution, TurnCounts } from '../run/run-fold.js';

// Columns of the run's row. An absent column keeps its value.
export type RunColumns = Partial<
  Pick<FoldedRun, 'status' | 'attempt_number' | 'error' | 'result' | 'cancel_requested' | 'waited_ms'>
>;

export interface ResolvedQuestion {
  readonly interaction_id: string;
  readonly state: Exclude<InteractionState, 'pending'>;
  readonly resolution: Resolution;
}

export interface RowChanges {
  // The target state of the last edge, which may equal the previous state; undefined if no edge was taken.
  readonly reached: RunState | undefined;
  readonly run: RunColumns;
  readonly handle: EngineSessionHandle | null;
  readonly asked: FoldedQuestion | null;
  readonly resolved: ResolvedQuestion | null;
  readonly turn: TurnCounts | null;
}

const COLUMNS = ['status', 'attempt_number', 'error', 'result', 'cancel_requested', 'waited_ms'] as const;

// Null: no row changes.
export function rowsOf(before: FoldedRun, after: FoldedRun): RowChanges | null {
  if (before === after) return null;
  const run = Object.fromEntries(
    COLUMNS.filter((name) => before[name] !== after[name]).map((name) => [name, after[name]]),
  ) as RunColumns;
  const isNew = after.question !== null && after.question.interaction_id !== before.question?.interaction_id;
  invariant(!isNew || after.question?.state === 'pending', 'a question is stored before its answer');
  return {
    reached: after.transitions === before.transitions ? undefined : after.status,
    run,
    handle: after.session !== before.session ? after.session : null,
    asked: isNew ? after.question : null,
    resolved: isNew ? null : resolvedIn(before, after),
    turn: after.turn !== before.turn ? after.turn : null,
  };
}

function resolvedIn({ question: before }: FoldedRun, { question: after }: FoldedRun): ResolvedQuestion | null {
  if (before?.state !== 'pending' || after === null || after.state === 'pending' || after.resolution === null)
    return null;
  return { interaction_id: after.interaction_id, state: after.state, resolution: after.resolution };
}

// An edge that leads back to the same state changes no row.
export function changesRows(rows: RowChanges | null): boolean {
  if (rows === null) return false;
  const { run, handle, asked, resolved, turn } = rows;
  return Object.keys(run).length > 0 || [handle, asked, resolved, turn].some((change) => change !== null);
}
