// Cancels a run that is not running: a queued run, or one that waits for an answer. The control of a running turn
// records the cancel request and ends the turn.
import { NO_FACTS } from '../run/guards.js';
import { isTerminal } from '../run/statechart.js';
import { refusal } from '../run/request-error.js';
import type { Actor, RunRecord } from '../store/store.js';
import { applyRunEvent, type ApplyDeps } from '../journal/apply-run-event.js';
import { loadRun } from '../journal/load-run.js';

// Canceling a canceled run again returns it. Resolves to null if the run is running.
export async function cancelIdle(deps: ApplyDeps, runId: string, actor: Actor | undefined): Promise<RunRecord | null> {
  for (;;) {
    const run = await loadRun(deps.store, runId);
    if (run.status === 'canceled') return run;
    if (isTerminal(run.status)) throw refusal('RUN_ENDED.cancel', { run: runId, status: run.status });
    if (run.status === 'running') return null;
    const outcome = await applyRunEvent(deps, run, { event: 'run.canceled', facts: NO_FACTS, actor });
    // Another writer was first: read the run again.
    if (outcome.applied) return outcome.run;
  }
}
