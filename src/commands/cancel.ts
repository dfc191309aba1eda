// Cancels a run that is not running: one that waits in the queue or for a person. A running turn is ended by its
// control; here the wish is remembered, so that a crash on the way does not forget it.
import { NO_FACTS } from '../run/guards.js';
import { isTerminal } from '../run/statechart.js';
import { RequestError } from '../run/request-error.js';
import type { Actor, RunRecord } from '../store/store.js';
import { applyRunEvent } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { loadRun } from '../journal/load-run.js';

// Canceling again is fine; null: the run is running now.
export async function cancelIdle(
  deps: OrchestratorDeps,
  runId: string,
  actor: Actor | undefined,
): Promise<RunRecord | null> {
  const run = await loadRun(deps.store, runId);
  if (run.status === 'canceled') return run;
  if (isTerminal(run.status)) throw new RequestError('RUN_ENDED', `run ${runId} has ${run.status} already`);
  if (run.status === 'running') return null;
  const pending = await deps.store.loadPending(runId);
  const resolution = {
    at: deps.clock.now(),
    response: null,
    actor: actor ?? null,
    idempotency_key: null,
    finish: false,
  };
  const outcome = await applyRunEvent(deps, run, {
    event: 'run.canceled',
    facts: NO_FACTS,
    actor,
    ...(pending ? { resolve: { interaction_id: pending.interaction_id, state: 'canceled' as const, resolution } } : {}),
  });
  // Somebody was quicker; look again.
  return outcome.applied ? outcome.run : cancelIdle(deps, runId, actor);
}

// Before the engine is ended: whoever finds the run afterwards knows what was wanted, and by whom. An ended run is left
// as it is.
export async function rememberCancel(deps: OrchestratorDeps, runId: string, actor: Actor | undefined): Promise<void> {
  for (;;) {
    const run = await loadRun(deps.store, runId);
    if (isTerminal(run.status) || run.cancel_requested) return;
    const now = deps.clock.now();
    const outcome = await deps.store.commit({
      run_id: runId,
      expect: { status: run.status, epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
      now,
      set: { cancel_requested: { at: now, actor: actor ?? null } },
    });
    // Else the turn stored something in between; look again.
    if (outcome.committed) return;
  }
}
