// Starts a turn, which is a change of state. Also ends runs that need no engine any more, or never got one: the run
// crashed its host twice, could not start, was finished by a person, or failed by an internal error.
import { damageIn, isFormError } from '../kernel/stored-json.js';
import { isDiskFull } from '../files/disk-full.js';
import { clip, redact } from '../kernel/redact.js';
import { NO_FACTS } from '../run/guards.js';
import { runError, type RunError } from '../run/run-error.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import {
  applyRunEvent,
  journalOfNewTurn,
  type Applied,
  type ApplyDeps,
  type RunTransition,
} from '../journal/apply-run-event.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import { loadRun } from '../journal/load-run.js';
import { endFromLogs, type EndDeps } from './end-from-logs.js';
import { explainInterruption } from './host-crashes.js';
import { expectApplied } from './turn-context.js';
import { writeResult } from './write-result.js';

const MAX_REASON_CHARS = 500;

// The store did not accept the start of a turn. Nothing has happened, and the turn can be started later.
export class NotBegunError extends Error {
  override readonly name = 'NotBegunError';
}

// From now on the turn has an owner: appends of an earlier owner are refused.
export async function beginTurn(
  deps: ApplyDeps,
  queued: RunRecord,
  before?: RunTransition['before'],
): Promise<Applied> {
  try {
    return await applyRunEvent(deps, queued, {
      event: 'turn.started',
      facts: NO_FACTS,
      epoch: queued.epoch + 1,
      ...(before ? { before } : {}),
    });
  } catch (cause) {
    throw new NotBegunError('the turn could not begin', { cause });
  }
}

// Fails a run that crashed its host twice instead of starting it: it might crash the host a third time.
export async function endCrashed(deps: ApplyDeps, queued: RunRecord): Promise<RunRecord> {
  const outcome = await applyRunEvent(deps, queued, {
    event: 'restart.reconcile_failed',
    facts: NO_FACTS,
    error: explainInterruption(queued),
  });
  return outcome.applied ? outcome.run : loadRun(deps.store, queued.run_id);
}

export async function failBeforeStart(deps: ApplyDeps, queued: RunRecord, error: RunError): Promise<RunRecord> {
  const started = await beginTurn(deps, queued);
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const { run } = started;
  const transition = { event: 'turn.failed', facts: NO_FACTS, error } as const;
  return expectApplied(await applyRunEvent(deps, run, transition, journalOfNewTurn(deps.clock, run)));
}

// Ends a conversation that a person finished while no question was open. This needs no engine.
export async function finishConversation(
  deps: ApplyDeps,
  queued: RunRecord,
  { question: { prompt } }: InteractionRecord,
): Promise<RunRecord> {
  const started = await beginTurn(deps, queued);
  if (!started.applied) return loadRun(deps.store, queued.run_id);
  const result = typeof prompt === 'string' ? prompt : null;
  const before = [await writeResult({ dataDir: deps.dataDir, runId: queued.run_id, result })];
  const transition = { event: 'turn.succeeded', facts: NO_FACTS, result, before } as const;
  return expectApplied(await applyRunEvent(deps, started.run, transition, journalOfNewTurn(deps.clock, started.run)));
}

// Fails a run whose turn could not be stored or run, so that it is not stuck: the disk was full, the system refused a
// call, or Parley has a bug. Output in the logs is stored with it.
export async function failInternally(
  deps: EndDeps & Pick<OrchestratorDeps, 'ownership'>,
  runId: string,
  reason: unknown,
): Promise<void> {
  const run = await deps.store.loadRun(runId);
  if (run?.status !== 'queued' && run?.status !== 'running') return;
  // Another host can start it.
  if (run.status === 'queued' && deps.ownership.hasPeers) return;
  const running = run.status === 'running' ? run : expectApplied(await beginTurn(deps, run));
  const error = describeFailure(runId, reason);
  try {
    expectApplied(await endFromLogs(deps, running, () => ({ event: 'turn.failed', error })));
  } catch (problem) {
    if (!damageIn(problem) && !isFormError(problem)) throw problem;
    // The journal cannot be read, now or later. The run must not stay in its state.
    const now = await loadRun(deps.store, runId);
    expectApplied(await applyRunEvent(deps, now, { event: 'turn.failed', facts: NO_FACTS, error, leavesTail: true }));
  }
}

function describeFailure(runId: string, thrown: unknown): RunError {
  const reason = redact(clip(thrown instanceof Error ? thrown.message : String(thrown), MAX_REASON_CHARS));
  return isDiskFull(thrown) ? runError('DISK_FULL', { reason, run: runId }) : runError('INTERNAL.turn', { reason });
}
