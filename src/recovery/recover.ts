// Recovers runs whose host stopped, crashed or lost its lease (orphans). Reads the rest of a running run's output from
// its logs and then fails it; waiting runs stay answerable. Ownership decides which runs are orphans. A single host
// recovers once: a server ends interrupted turns while it already serves, because their output may be large. Hosts that
// share a store recover repeatedly.
import type { OnFailure } from '../kernel/log.js';
import { unlessDamaged } from '../kernel/stored-json.js';
import { endLeftovers } from '../process/end-leftovers.js';
import { listMarked } from '../process/process-table.js';
import { NO_FACTS } from '../run/guards.js';
import { runError, type RunError } from '../run/run-error.js';
import type { Actor, CancelRequest, RunRecord } from '../store/store.js';
import type { OrphanState } from '../ownership/ownership.js';
import { applyRunEvent, type ApplyDeps } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { isStored } from '../journal/every-run.js';
import { endFromLogs, type EndDeps, type Ending } from '../turn/end-from-logs.js';
import { explainInterruption } from '../turn/host-crashes.js';
import type { JournalFiles } from '../journal/journal-files.js';
import { loadRun } from '../journal/load-run.js';
import { LostRunError } from '../turn/turn-writer.js';
import { endWithoutLogs } from './end-without-logs.js';

export interface RecoverySettings {
  // Queued runs have not started. They fail, as the requirements demand, or stay queued.
  readonly queued: 'fail' | 'requeue';
  // Running runs fail. With "retry", a new run repeats each of them once.
  readonly running?: 'fail' | 'retry';
}

const GRACE_MS = 2000;
// Waiting runs that are checked together: their events share a transaction.
const CHECKED_AT_ONCE = 50;
const FAILED_AT_ONCE = 50;
const MOST_STRANDED = 100;

const FILES_GONE = runError('SESSION_RESUME_FAILED.files_offline');
const PATHS_GONE = runError('ORCHESTRATOR_RESTART_INTERRUPTED.offline');

export interface RecoveryWork {
  readonly deps: EndDeps & Pick<OrchestratorDeps, 'ownership'>;
  readonly settings: RecoverySettings;
  // Completes the journal files of a run before the run is ended, so that a reader who sees the end finds complete
  // files.
  readonly journalFiles: Pick<JournalFiles, 'write'>;
  // Whether a turn of the run is running in this process.
  readonly isRunHere: (runId: string) => boolean;
  // Interrupted runs that are not ended yet. Callers show them as recovering.
  readonly recovering: Set<string>;
  // Who wants to cancel which of them: an end that is being read from the logs becomes a cancellation.
  readonly cancels: Map<string, Actor | undefined>;
  // Runs one piece of work per run at a time: recovery and cancels must not end the same orphan together.
  readonly exclusively: <T>(runId: string, work: () => Promise<T>) => Promise<T>;
  readonly signal: AbortSignal;
  readonly onFailure: OnFailure;
}

// Ends engine processes that an earlier Parley process left running, in whatever state their runs are.
export async function endOldEngines({
  store,
  ownership,
  timers,
}: Pick<OrchestratorDeps, 'store' | 'ownership' | 'timers'>): Promise<void> {
  const marks = new Set<string>();
  for (const { mark } of listMarked()) {
    const runId = mark?.slice(0, mark.lastIndexOf('/')) ?? '';
    if (mark !== null && (await isStored(store, runId)) && !(await ownership.isRunElsewhere(runId))) marks.add(mark);
  }
  if (marks.size > 0) await endLeftovers((mark) => marks.has(mark), { graceMs: GRACE_MS, timers });
}

export async function recoverOrphans(work: RecoveryWork): Promise<void> {
  await beginRecovery(work);
  await recoverInterrupted(work);
}

// The part that must be done before any turn starts: it lists the interrupted runs and fails queued ones. Reports a run
// that cannot be recovered and continues with the others.
export async function beginRecovery(work: RecoveryWork): Promise<void> {
  const { deps, settings, signal, recovering, onFailure } = work;
  await deps.store.countCrashes();
  for (const runId of await deps.ownership.listOrphans('running')) if (!work.isRunHere(runId)) recovering.add(runId);
  if (settings.queued === 'fail')
    for await (const runs of inGroups(orphans(work, 'queued'), FAILED_AT_ONCE))
      await Promise.all(
        runs.map((run) => failQueued(work, run).catch((error: unknown) => onFailure(run.run_id, error))),
      );
  for (const { run_id: runId, hasSite } of signal.aborted ? [] : await deps.files.listStranded(MOST_STRANDED))
    await failStranded(deps, runId, hasSite ? FILES_GONE : PATHS_GONE).catch((error: unknown) =>
      onFailure(runId, error),
    );
}

// Ends the interrupted runs, one after the other: each may have a large output to read.
export async function recoverInterrupted(work: RecoveryWork, onEnded: () => void = () => {}): Promise<void> {
  for (const runId of work.recovering) {
    if (work.signal.aborted) return;
    await recoverRunning(work, runId).catch((error: unknown) => {
      if (!work.signal.aborted) work.onFailure(runId, error);
    });
    work.recovering.delete(runId);
    onEnded();
  }
}

// Checks waiting runs while the host already serves: they can be answered at once, and there may be thousands. A run
// that is answered first needs no check. A run whose session cannot be looked up stays as it is.
export async function recoverWaitingRuns(work: RecoveryWork): Promise<void> {
  for await (const runs of inGroups(orphans(work, 'waiting_user'), CHECKED_AT_ONCE)) {
    await Promise.all(
      runs.map((run) => recoverWaiting(work.deps, run).catch((error: unknown) => work.onFailure(run.run_id, error))),
    );
    await new Promise((resolve) => setImmediate(resolve));
  }
}

// Takes over a running orphan and cancels it. Resolves to false if the run is not an orphan.
export async function cancelOrphan(
  work: Pick<RecoveryWork, 'deps' | 'isRunHere' | 'exclusively' | 'cancels' | 'onFailure'>,
  runId: string,
  actor: Actor | undefined,
): Promise<boolean> {
  // The first request counts.
  if (!work.cancels.has(runId)) work.cancels.set(runId, actor);
  return work.exclusively(runId, async () => {
    work.cancels.delete(runId);
    const taken = await takeOver(work, await work.deps.store.loadRun(runId));
    if (!taken) return false;
    // The first request counts: the run may already hold one of another caller.
    const first = taken.cancel_requested ?? { actor };
    const ending = { event: 'run.canceled', actor: first.actor ?? undefined } as const;
    await endTaken(work.deps, taken, () => ending).catch(unlessLost);
    return true;
  });
}

// Another writer has changed the run meanwhile: the caller reads it again.
function unlessLost(error: unknown): void {
  if (!(error instanceof LostRunError)) throw error;
}

async function recoverRunning(work: RecoveryWork, runId: string): Promise<void> {
  return work.exclusively(runId, async () => {
    const taken = await takeOver(work, await work.deps.store.loadRun(runId));
    if (taken) await endOrphan(work, taken);
  });
}

async function endOrphan(work: RecoveryWork, taken: RunRecord): Promise<void> {
  const { deps, journalFiles, onFailure } = work;
  const { run_id: runId } = taken;
  const isHere = await deps.files.isHere(runId);
  if (isHere) await journalFiles.write(runId).catch((error: unknown) => onFailure(runId, error));
  const ending = (): Ending => {
    if (taken.cancel_requested) return { event: 'run.canceled', actor: taken.cancel_requested.actor ?? undefined };
    if (work.cancels.has(runId)) return { event: 'run.canceled', actor: work.cancels.get(runId) };
    const error = explainInterruption(taken, isHere ? 'running' : 'logs_elsewhere');
    return { event: 'restart.reconcile_failed', error };
  };
  try {
    await endTaken(deps, taken, ending, work.signal);
  } catch (error) {
    // The next start recovers the run.
    if (error instanceof LostRunError || work.signal.aborted) return;
    onFailure(runId, error);
    await endUnread(deps, runId);
  }
}

// Ends the run without its logs, because they could not be read.
async function endUnread(deps: ApplyDeps, runId: string): Promise<void> {
  const run = await loadRun(deps.store, runId);
  if (run.status !== 'running') return;
  if (run.cancel_requested) return cancelRecorded(deps, run, run.cancel_requested);
  const error = explainInterruption(run, 'logs_unreadable');
  await applyRunEvent(deps, run, {
    event: 'restart.reconcile_failed',
    facts: NO_FACTS,
    error,
    leavesTail: true,
  });
}

async function cancelRecorded(deps: ApplyDeps, run: RunRecord, { actor }: CancelRequest): Promise<void> {
  const leavesTail = run.status === 'running';
  await applyRunEvent(deps, run, { event: 'run.canceled', facts: NO_FACTS, actor: actor ?? undefined, leavesTail });
}

// Null: the run is not running, or a live process has it. A turn may start here while this is decided.
async function takeOver(
  { deps: { ownership, timers }, isRunHere, onFailure }: Pick<RecoveryWork, 'deps' | 'isRunHere' | 'onFailure'>,
  run: RunRecord | null,
): Promise<RunRecord | null> {
  if (run?.status !== 'running' || isRunHere(run.run_id)) return null;
  const taken = await ownership.takeOver(run);
  if (isRunHere(run.run_id)) return null;
  // The engine may still run on this machine. If it runs on another one, its output is no longer read.
  if (taken && taken.epoch !== run.epoch)
    await endLeftovers((mark) => mark.startsWith(`${run.run_id}/`), { graceMs: GRACE_MS, timers }).catch(
      (error: unknown) => onFailure(run.run_id, error),
    );
  return taken;
}

async function endTaken(deps: EndDeps, run: RunRecord, ending: () => Ending, signal?: AbortSignal): Promise<void> {
  if (await deps.files.isHere(run.run_id)) await endFromLogs(deps, run, ending, signal);
  else await endWithoutLogs(deps, run, ending());
}

async function failQueued({ deps, settings }: RecoveryWork, run: RunRecord): Promise<void> {
  // A retry of an interrupted run stays queued and starts.
  if (run.spec.retry_of !== undefined && settings.running === 'retry' && run.attempt_number === 1) return;
  const error = explainInterruption(run, 'queued');
  await applyRunEvent(deps, run, { event: 'restart.reconcile_failed', facts: NO_FACTS, error });
}

async function failStranded(deps: ApplyDeps, runId: string, error: RunError): Promise<void> {
  const run = await deps.store.loadRun(runId);
  if (run?.status === 'queued')
    await applyRunEvent(deps, run, { event: 'restart.reconcile_failed', facts: NO_FACTS, error });
}

async function recoverWaiting(deps: EndDeps, run: RunRecord): Promise<void> {
  // The turn ended with a question although a cancel request was recorded before.
  if (run.cancel_requested) return cancelRecorded(deps, run, run.cancel_requested);
  const pending = await deps.store.loadPendingInteraction(run.run_id);
  const handle = await deps.store.loadHandle(run.request_id);
  const facts = {
    ...NO_FACTS,
    pending: pending !== null,
    handle: handle !== null && handle.handle_type === 'session_id' && (await deps.runtime.hasSession(handle)),
  };
  if (facts.pending && facts.handle) {
    await applyRunEvent(deps, run, { event: 'restart.preserve_waiting', facts, pending });
    return;
  }
  await applyRunEvent(deps, run, {
    event: 'restart.reconcile_failed',
    facts,
    pending,
    error: {
      ...runError('SESSION_RESUME_FAILED.after_restart'),
      ...(pending ? { details: { unanswered: pending.question } } : {}),
    },
  });
}

// Loads the runs one by one, because a prompt may be large.
async function* orphans(
  { deps: { store, ownership }, isRunHere, signal, onFailure }: RecoveryWork,
  state: OrphanState,
): AsyncGenerator<RunRecord> {
  for (const id of await ownership.listOrphans(state)) {
    if (signal.aborted) return;
    const run = isRunHere(id) ? null : await unlessDamaged(store.loadRun(id), (damage) => onFailure(id, damage));
    if (run?.status === state && !isRunHere(id)) yield run;
  }
}

async function* inGroups<T>(items: AsyncIterable<T>, size: number): AsyncGenerator<T[]> {
  let group: T[] = [];
  for await (const item of items) {
    group.push(item);
    if (group.length < size) continue;
    yield group;
    group = [];
  }
  if (group.length > 0) yield group;
}
