// The run that repeats an interrupted one, where recovery.running is "retry". It is stored in the transaction that
// fails the interrupted run, so it exists exactly once, whoever crashes when. An interrupted run is repeated at most
// once: never if it is itself such a retry, if somebody wants it canceled, or if an approval was handed over in the
// interrupted turn.
import { findEngine } from '../engines/registry.js';
import { readStoredJson } from '../kernel/stored-json.js';
import type { RaspEvent } from '../rasp/event.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { NewRun, RunRecord } from '../store/store.js';
import { loadSession, planRetry } from '../commands/continue-run.js';
import { buildRun } from '../commands/create-run.js';
import type { OrchestratorDeps } from '../journal/deps.js';

const PAGE = 500;
const PAGE_CHARS = 4_000_000;

type OnFailure = (runId: string, error: unknown) => void;

// From now on whatever fails an interrupted run also creates the run that repeats it.
export function withRetries(deps: OrchestratorDeps, onFailure: OnFailure): OrchestratorDeps {
  return { ...deps, retryInterrupted: (run, handle) => buildRestartRetry(deps, run, { handle, onFailure }) };
}

// `handle` is the session that is stored with the failure, if there was none before. What keeps a retry from being
// built is reported.
async function buildRestartRetry(
  deps: OrchestratorDeps,
  run: RunRecord,
  {
    handle,
    onFailure,
  }: {
    readonly handle: EngineSessionHandle | undefined;
    readonly onFailure: OnFailure;
  },
): Promise<NewRun | null> {
  if (run.spec.retry_of !== undefined || run.cancel_requested) return null;
  try {
    if (await wasApprovalApplied(deps, run)) return null;
    const session = handle?.handle_type === 'session_id' ? handle : await loadSession(deps, run);
    const { again, origin } = await planRetry(deps, run, session);
    return await buildRun(
      deps,
      { ...again, request_id: retryRequestId(run.run_id) },
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

// Only resident engines ask for approvals. The event is stored before the decision is handed over.
async function wasApprovalApplied({ store }: OrchestratorDeps, run: RunRecord): Promise<boolean> {
  if (findEngine(run.spec.engine).resident === undefined) return false;
  for (let fromSeq = 1; ;) {
    const lines = await store.readJournal(run.run_id, 'rasp', { fromSeq, limit: PAGE, maxChars: PAGE_CHARS });
    for (const line of lines) {
      const { event, attempt_number: attempt } = readStoredJson(line) as RaspEvent;
      if (event.type === 'interaction.approval.applied' && attempt === run.attempt_number) return true;
    }
    if (lines.length === 0) return false;
    fromSeq += lines.length;
  }
}
