// The end of a waiting run whose process is lost, for runs that need their process (see src/run/waiting).
import { runError, type RunError } from '../../run/run-error.js';
import { parseRuntimeOptions } from '../../run/runtime-options.js';
import { waitPolicyOf } from '../../run/waiting/wait-policy.js';
import type { RunRecord } from '../../store/store.js';
import { applyRunEvent, type ApplyDeps } from '../../journal/apply-run-event.js';

export const WAITED_TOO_LONG = runError('INTERACTION_WAIT_TIMEOUT');
export const PROCESS_LOST = runError('INTERACTION_PROCESS_LOST');

// Whether the deadline of a question ends the process and the run: the run needs its process, and only a person may
// answer.
export function endsAtDeadline({ spec }: RunRecord): boolean {
  return waitPolicyOf(spec).needsProcess && parseRuntimeOptions(spec.runtime_options).interactive_require_user_reply;
}

// Returns false if the run no longer waits for this answer. Safe against a concurrent reply: exactly one of the two
// commits.
export async function failWaiting(
  deps: ApplyDeps,
  runId: string,
  interactionId: string,
  error: RunError,
): Promise<boolean> {
  for (;;) {
    const run = await deps.store.loadRun(runId);
    const pending = await deps.store.loadPendingInteraction(runId);
    if (run?.status !== 'waiting_user' || pending?.interaction_id !== interactionId) return false;
    const outcome = await applyRunEvent(deps, run, {
      event: 'turn.failed',
      facts: waitPolicyOf(run.spec).lostFacts,
      error: { ...error, details: { unanswered: pending.question } },
      pending,
    });
    if (outcome.applied) return true;
    if ('refusal' in outcome) return false;
  }
}
