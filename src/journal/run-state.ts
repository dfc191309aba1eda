// The folded state of a stored run, from its row. Contains everything in the rows except the session and the turn
// counts, on which no later event depends.
import { waitRules, type FoldedQuestion, type FoldedRun } from '../run/run-fold.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { CancelRequest, RunRecord } from '../store/store.js';

// `question` is needed while the run waits, because the next events may resolve it.
export function stateOf({ spec, ...run }: RunRecord, question: FoldedQuestion | null = null): FoldedRun {
  return {
    request: {
      engine: spec.engine,
      cwd: spec.cwd,
      home: spec.home,
      ...waitRules(spec.runtime_options, waitPolicyOf(spec).needsProcess),
    },
    status: run.status,
    transitions: 0,
    attempt_number: run.attempt_number,
    error: run.error,
    result: run.result,
    cancel_requested: recordedCancel(run),
    waited_ms: run.waited_ms,
    question,
    session: null,
    turn: null,
  };
}

// The cancel request that an event records.
export function recordedCancel({
  cancel_requested: request,
}: Pick<RunRecord, 'cancel_requested'>): CancelRequest | null {
  return request?.unrecorded ? null : request;
}

// The run after an append.
export function withState(run: RunRecord, state: FoldedRun): RunRecord {
  const { status, attempt_number, error, result, waited_ms } = state;
  // A request that another host left in the row stays there until it is recorded.
  const cancel_requested = state.cancel_requested ?? run.cancel_requested;
  return { ...run, status, attempt_number, error, result, cancel_requested, waited_ms };
}
