// Builds the run that repeats an interrupted one if recovery.running is "retry". The retry is stored in the transaction
// that fails the interrupted run, so it exists exactly once whenever a host crashes. An interrupted run is repeated at
// most once. It is not repeated if it is itself such a retry, if it has a cancel request, or if an approval was applied
// in the interrupted turn.
import { findEngine } from '../engines/registry.js';
import type { OnFailure } from '../kernel/log.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { NewRun, RunRecord } from '../store/store.js';
import { loadSession, planRetry } from '../commands/continue-run.js';
import { buildRun, type CreateDeps } from '../commands/create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { everyEvent } from '../journal/every-event.js';

// Returns dependencies with which every change that fails an interrupted run also creates its retry.
export function withRetries(deps: OrchestratorDeps, onFailure: OnFailure): OrchestratorDeps {
  return { ...deps, retryInterrupted: (run, confirmed) => buildRestartRetry(deps, run, { confirmed, onFailure }) };
}

interface RestartRetryOptions {
  // The session that is stored together with the failure, if none was stored before.
  readonly confirmed: EngineSessionHandle | null;
  readonly onFailure: OnFailure;
}

// An error is reported and only prevents the retry: the interrupted run still fails.
async function buildRestartRetry(
  deps: CreateDeps,
  run: RunRecord,
  { confirmed, onFailure }: RestartRetryOptions,
): Promise<NewRun | null> {
  if (run.spec.retry_of !== undefined || run.cancel_requested) return null;
  try {
    if (await wasApprovalApplied(deps, run)) return null;
    const session = confirmed?.handle_type === 'session_id' ? confirmed : await loadSession(deps, run);
    const { request, origin } = await planRetry(deps, run, session);
    return await buildRun(
      deps,
      { ...request, request_id: retryRequestId(run.run_id) },
      { ...origin, actor: { kind: 'system', name: 'recovery' }, retryOf: run.run_id },
    );
  } catch (error) {
    onFailure(run.run_id, error);
    return null;
  }
}

function retryRequestId(runId: string): string {
  return `retry-after-restart:${runId}`;
}

// Resident engines and those with a gate request approvals. The event is stored before the engine receives the
// decision.
async function wasApprovalApplied({ store }: Pick<OrchestratorDeps, 'store'>, run: RunRecord): Promise<boolean> {
  const { resident, gate } = findEngine(run.spec.engine);
  if (!resident && !gate) return false;
  for await (const { event, attempt_number: attempt } of everyEvent(store, run.run_id))
    if (event.type === 'interaction.approval.applied' && attempt === run.attempt_number) return true;
  return false;
}
