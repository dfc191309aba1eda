// The end of a run whose session lived in a process that waited with it: the process is gone, and the answer could
// reach nobody.
import { NO_FACTS } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import { applyRunEvent } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';

export const WAITED_TOO_LONG: RunError = {
  code: 'INTERACTION_WAIT_TIMEOUT',
  message: 'Nobody answered before the session timeout, and the process that waited was ended.',
};
export const PROCESS_LOST: RunError = {
  code: 'INTERACTION_PROCESS_LOST',
  message: 'The process that waited for the answer has ended, and its session with it.',
};

// False: the run does not wait for this answer any more. Whoever answers in the same moment is first, or second.
export async function failWaiting(
  deps: OrchestratorDeps,
  runId: string,
  interactionId: string,
  error: RunError,
): Promise<boolean> {
  for (;;) {
    const run = await deps.store.loadRun(runId);
    const pending = await deps.store.loadPending(runId);
    if (run?.status !== 'waiting_user' || pending?.interaction_id !== interactionId) return false;
    const outcome = await applyRunEvent(deps, run, {
      event: 'turn.failed',
      facts: { ...NO_FACTS, pending: true, sticky: run.spec.sticky === true },
      error: { ...error, details: { unanswered: pending.question } },
      resolve: {
        interaction_id: interactionId,
        state: 'abandoned',
        resolution: { at: deps.clock.now(), response: null, actor: null, idempotency_key: null, finish: false },
      },
    });
    if (outcome.applied) return true;
    if ('refusal' in outcome) return false;
  }
}
