// What other hosts have left: runs that were running when their host went are ended with their code, as after a
// restart; runs that wait for a host that does not come back are told so. Runs that wait for a person stay as they are:
// any host takes the answer.
import { endLeftovers } from '../process/end-leftovers.js';
import { NO_FACTS } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import type { RunRecord } from '../store/store.js';
import { applyRunEvent } from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { endWithoutLogs } from './end-without-logs.js';
import { explainInterruption, INTERRUPTED } from '../turn/host-crashes.js';
import { recoverRunning } from './recover.js';

// At a time; what is left is seen at the next look.
const MOST = 100;
const GRACE_MS = 2000;

const FILES_GONE: RunError = {
  code: 'SESSION_RESUME_FAILED',
  message: 'The files of the run are on a host that has been gone for too long; the conversation can go on only there.',
};
const PATHS_GONE: RunError = {
  ...INTERRUPTED,
  message: 'The run did not begin: no host with the data directory that it was created in has been there for too long.',
};

type OnFailure = (runId: string, error: unknown) => void;

// `isPlayed` tells of a turn that is under way here.
export async function reconcile(
  deps: OrchestratorDeps,
  isPlayed: (runId: string) => boolean,
  stopped: () => boolean,
  onFailure: OnFailure,
): Promise<void> {
  const { cluster, store } = deps;
  if (!cluster) return;
  for (const runId of await cluster.listAbandoned(MOST)) {
    if (stopped()) return;
    await endAbandoned(deps, runId, onFailure).catch((error: unknown) => onFailure(runId, error));
  }
  // Ours by the store, and nobody's here: its beginning or its take-over was stored, and nobody heard of it.
  for (const runId of await cluster.listOwned(MOST)) {
    if (stopped()) return;
    const run = isPlayed(runId) ? null : await store.loadRun(runId);
    if (run?.status === 'running' && !isPlayed(runId))
      await endTaken(deps, run, onFailure).catch((error: unknown) => onFailure(runId, error));
  }
  for (const { run_id: runId, hasSite } of await cluster.listStranded(MOST)) {
    if (stopped()) return;
    const run = await store.loadRun(runId);
    if (run?.status === 'queued')
      await applyRunEvent(deps, run, {
        event: 'restart.reconcile_failed',
        facts: NO_FACTS,
        error: hasSite ? FILES_GONE : PATHS_GONE,
      }).catch((error: unknown) => onFailure(runId, error));
  }
}

// Null: it is not abandoned, or another was first.
export async function takeOver(
  { cluster, store, timers }: OrchestratorDeps,
  runId: string,
  onFailure: OnFailure,
): Promise<RunRecord | null> {
  const run = await store.loadRun(runId);
  const taken = run?.status === 'running' ? ((await cluster?.takeOver(run)) ?? null) : null;
  // Nothing of it may work on here; on another machine nobody listens to it any more.
  if (taken)
    await endLeftovers((mark) => mark.startsWith(`${runId}/`), { graceMs: GRACE_MS, timers }).catch((error: unknown) =>
      onFailure(runId, error),
    );
  return taken;
}

async function endAbandoned(deps: OrchestratorDeps, runId: string, onFailure: OnFailure): Promise<void> {
  const taken = await takeOver(deps, runId, onFailure);
  if (taken) await endTaken(deps, taken, onFailure);
}

async function endTaken(deps: OrchestratorDeps, taken: RunRecord, onFailure: OnFailure): Promise<void> {
  if (await deps.cluster?.hasFiles(taken.run_id)) return recoverRunning(deps, taken, onFailure);
  const wish = taken.cancel_requested;
  const message =
    'The host that ran this run is gone, or has lost its lease; what its engine printed last is in its logs ' +
    'there. Repeat it with parley retry; the setting recovery.running="retry" repeats interrupted runs once by ' +
    'itself.';
  await endWithoutLogs(
    deps,
    taken,
    wish
      ? { event: 'run.canceled', actor: wish.actor ?? undefined }
      : { event: 'restart.reconcile_failed', error: explainInterruption(taken, message) },
  );
}
