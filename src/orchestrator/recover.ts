// What a start finds of the time before: runs that wait stay answerable, runs that were cut off are ended with their code.
// What a dead engine printed and nobody recorded is read from its logs first.
import { endLeftovers } from '../process/end-leftovers.js';
import { NO_FACTS } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent, type RunTransition } from './apply-run-event.js';
import type { OrchestratorDeps } from './deps.js';
import { endFromLogs } from './end-from-logs.js';

export interface RecoverySettings {
  // Queued runs have not begun: they may fail, as the requirement says, or stay queued.
  readonly queued: 'fail' | 'requeue';
}

const GRACE_MS = 2000;
const PAGE = 500;
const INTERRUPTED: RunError = { code: 'ORCHESTRATOR_RESTART_INTERRUPTED', message: 'Parley stopped while the run was queued or running.' };

export async function recover(deps: OrchestratorDeps, settings: RecoverySettings): Promise<void> {
  const running = await listAll(deps, 'running');
  // Their engines may still be alive; nothing of them may work on.
  const marks = new Set(running.map((run) => `${run.run_id}/${run.attempt_number}`));
  await endLeftovers((mark) => marks.has(mark), { graceMs: GRACE_MS, timers: deps.timers });
  for (const run of running) {
    const wish = run.cancel_requested;
    await endFromLogs(deps, run, wish ? { event: 'run.canceled', actor: wish.actor ?? undefined } : { event: 'restart.reconcile_failed', error: INTERRUPTED });
  }
  if (settings.queued === 'fail') for (const run of await listAll(deps, 'queued')) await applyRunEvent(deps, run, { event: 'restart.reconcile_failed', facts: NO_FACTS, error: INTERRUPTED });
}

// Waiting runs are answerable from the first moment, so they are looked at beside other work: there may be thousands.
// An answer that comes first wins; then there is nothing left to preserve.
export async function recoverWaitingRuns(deps: OrchestratorDeps, stopped: () => boolean): Promise<void> {
  for (const run of await listAll(deps, 'waiting_user')) {
    if (stopped()) return;
    await recoverWaiting(deps, run);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function recoverWaiting(deps: OrchestratorDeps, run: RunRecord): Promise<void> {
  const pending = await deps.store.loadPending(run.run_id);
  const handle = await deps.store.loadHandle(run.request_id);
  const facts = { ...NO_FACTS, pending: pending !== null, handle: handle !== null && (await deps.host.hasSession(handle)) };
  if (facts.pending && facts.handle) {
    await applyRunEvent(deps, run, { event: 'restart.preserve_waiting', facts });
    return;
  }
  const resolution = { at: deps.clock.now(), response: null, actor: null, idempotency_key: null, finish: false };
  const transition: RunTransition = {
    event: 'restart.reconcile_failed',
    facts,
    error: { code: 'SESSION_RESUME_FAILED', message: 'After a restart the question or the session of the run was not there any more.', ...(pending ? { details: { unanswered: pending.question } } : {}) },
    ...(pending ? { resolve: { interaction_id: pending.interaction_id, state: 'abandoned' as const, resolution } } : {}),
  };
  await applyRunEvent(deps, run, transition);
}

async function listAll(deps: OrchestratorDeps, status: RunRecord['status']): Promise<RunRecord[]> {
  const found: RunRecord[] = [];
  for (;;) {
    const before = found.at(-1)?.run_id;
    const page = await deps.store.listRuns({ status, limit: PAGE, ...(before === undefined ? {} : { before }) });
    found.push(...page);
    if (page.length < PAGE) return found;
  }
}
