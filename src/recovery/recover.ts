// What a start finds of the time before: runs that wait stay answerable, runs that were cut off are ended with their
// code. What a dead engine printed and nobody recorded is read from its logs first.
import { unlessDamaged } from '../kernel/stored-json.js';
import { endLeftovers } from '../process/end-leftovers.js';
import { listMarked } from '../process/process-table.js';
import { NO_FACTS } from '../run/guards.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent, type RunTransition } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { isStored } from '../journal/every-run.js';
import { endFromLogs } from '../turn/end-from-logs.js';
import { explainInterruption, INTERRUPTED_QUEUED } from '../turn/host-crashes.js';
import type { JournalFiles } from '../journal/journal-files.js';
import { loadRun } from '../journal/load-run.js';

export interface RecoverySettings {
  // Queued runs have not begun: they may fail, as the requirement says, or stay queued.
  readonly queued: 'fail' | 'requeue';
  // Running runs fail; with retry, a new run repeats each of them once.
  readonly running?: 'fail' | 'retry';
}

const GRACE_MS = 2000;
const PAGE = 500;

type OnFailure = (runId: string, error: unknown) => void;

// What cannot be recovered is told, and keeps nothing else from being recovered. The files of a run that was cut off
// are behind: they are made whole before it is ended, so that whoever sees its end finds all of it there.
export async function recover(
  deps: OrchestratorDeps,
  files: JournalFiles,
  settings: RecoverySettings,
  onFailure: OnFailure,
): Promise<void> {
  await endEngines(deps).catch((error: unknown) => onFailure('', error));
  // Others may be at what this one finds.
  if (deps.cluster) return;
  await deps.store.countCrashes();
  for await (const run of listAll(deps, 'running', onFailure)) {
    await files.write(run.run_id).catch((error: unknown) => onFailure(run.run_id, error));
    await recoverRunning(deps, run, onFailure);
  }
  if (settings.queued === 'requeue') return;
  for await (const run of listAll(deps, 'queued', onFailure)) {
    // A retry of an interrupted run that has not begun yet still begins.
    if (run.spec.retry_of !== undefined && settings.running === 'retry' && run.attempt_number === 1) continue;
    await applyRunEvent(deps, run, {
      event: 'restart.reconcile_failed',
      facts: NO_FACTS,
      error: explainInterruption(run, INTERRUPTED_QUEUED),
    });
  }
}

// Engines of the last one may still be alive; nothing of them may work on, whatever became of their run.
async function endEngines(deps: OrchestratorDeps): Promise<void> {
  const marks = new Set<string>();
  for (const { mark } of listMarked()) {
    const runId = mark?.slice(0, mark.lastIndexOf('/')) ?? '';
    if (mark !== null && (await isStored(deps.store, runId)) && !(await deps.cluster?.isPlayed(runId))) marks.add(mark);
  }
  if (marks.size > 0) await endLeftovers((mark) => marks.has(mark), { graceMs: GRACE_MS, timers: deps.timers });
}

export async function recoverRunning(deps: OrchestratorDeps, run: RunRecord, onFailure: OnFailure): Promise<void> {
  const wish = run.cancel_requested;
  try {
    await endFromLogs(
      deps,
      run,
      wish
        ? { event: 'run.canceled', actor: wish.actor ?? undefined }
        : { event: 'restart.reconcile_failed', error: explainInterruption(run) },
    );
  } catch (error) {
    onFailure(run.run_id, error);
    // Its logs cannot be read, say: then without them.
    const found = await loadRun(deps.store, run.run_id);
    if (found.status === 'running')
      await applyRunEvent(deps, found, {
        event: 'restart.reconcile_failed',
        facts: NO_FACTS,
        error: explainInterruption(
          found,
          'Parley stopped while the run was running. What its engine printed last could not be read from its logs.',
        ),
      });
  }
}

// Waiting runs are answerable from the first moment, so they are looked at beside other work: there may be thousands.
// An answer that comes first wins; then there is nothing left to preserve. One that cannot be looked at stays as it is.
export async function recoverWaitingRuns(
  deps: OrchestratorDeps,
  stopped: () => boolean,
  onFailure: OnFailure,
): Promise<void> {
  for await (const run of listAll(deps, 'waiting_user', onFailure)) {
    if (stopped()) return;
    await recoverWaiting(deps, run).catch((error: unknown) => onFailure(run.run_id, error));
    await new Promise((resolve) => setImmediate(resolve));
  }
}

async function recoverWaiting(deps: OrchestratorDeps, run: RunRecord): Promise<void> {
  const pending = await deps.store.loadPending(run.run_id);
  const handle = await deps.store.loadHandle(run.request_id);
  const facts = {
    ...NO_FACTS,
    pending: pending !== null,
    handle: handle !== null && handle.handle_type === 'session_id' && (await deps.host.hasSession(handle)),
  };
  if (facts.pending && facts.handle) {
    await applyRunEvent(deps, run, { event: 'restart.preserve_waiting', facts });
    return;
  }
  const resolution = { at: deps.clock.now(), response: null, actor: null, idempotency_key: null, finish: false };
  const transition: RunTransition = {
    event: 'restart.reconcile_failed',
    facts,
    error: {
      code: 'SESSION_RESUME_FAILED',
      message: 'After a restart the question or the session of the run was not there any more.',
      ...(pending ? { details: { unanswered: pending.question } } : {}),
    },
    ...(pending
      ? { resolve: { interaction_id: pending.interaction_id, state: 'abandoned' as const, resolution } }
      : {}),
  };
  await applyRunEvent(deps, run, transition);
}

// The runs that have the status now. Their ids are read first, because the work changes the list; the runs one by one,
// because a prompt may be large.
async function* listAll(
  { store }: OrchestratorDeps,
  status: RunRecord['status'],
  onFailure: OnFailure,
): AsyncGenerator<RunRecord> {
  const ids: string[] = [];
  for (
    let page = await store.listRunIds({ status, limit: PAGE });
    page.length > 0;
    page = await store.listRunIds({ status, limit: PAGE, before: page.at(-1) ?? '' })
  )
    ids.push(...page);
  for (const id of ids) {
    const run = await unlessDamaged(store.loadRun(id), (damage) => onFailure(id, damage));
    if (run?.status === status) yield run;
  }
}
