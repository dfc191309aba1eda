// The one door to a run's state: the chart is asked, and the change, its events and all that belongs to it are
// committed in one transaction. No other code writes a status.
import type { RaspDraft } from '../rasp/draft.js';
import type { GuardFacts } from '../run/guards.js';
import type { RunError } from '../run/judge-completion.js';
import { isTerminal, type Edge, type RunEvent, type Step } from '../run/statechart.js';
import type { RaspData } from '../rasp/event.js';
import type { CommitOutcome, RunChange, RunRecord, TurnCounts } from '../store/store.js';
import { buildDeliveries } from './build-deliveries.js';
import type { OrchestratorDeps } from './deps.js';
import { RunJournal } from './run-journal.js';
import { takeEdge, type EdgeDetails } from './take-edge.js';
import { readTail } from './unread-tail.js';

export interface RunTransition extends Pick<EdgeDetails, 'result' | 'actor' | 'sessionId'> {
  readonly event: RunEvent;
  readonly facts: GuardFacts;
  readonly error?: RunError | undefined;
  // Events that belong to it, stored right before the change of state.
  readonly before?: readonly RaspDraft[];
  readonly set?: Pick<NonNullable<RunChange['set']>, 'attempt_number' | 'epoch'>;
  readonly handle?: RunChange['handle'];
  readonly ask?: RunChange['ask'];
  readonly resolve?: RunChange['resolve'];
}

export type Applied =
  | { readonly applied: true; readonly edge: Edge; readonly run: RunRecord }
  // The chart or a guard says no: nothing was written.
  | { readonly applied: false; readonly refusal: Extract<Step, { legal: false }> }
  // Somebody else was first: nothing was written.
  | { readonly applied: false; readonly conflict: Extract<CommitOutcome, { committed: false }>['reason'] };

// `run` is what the caller has read and decided upon; if the store has moved on since, the change is refused.
export async function applyRunEvent(
  deps: Pick<
    OrchestratorDeps,
    'store' | 'clock' | 'ids' | 'hooks' | 'runUrl' | 'dataDir' | 'cluster' | 'retryInterrupted'
  >,
  run: RunRecord,
  transition: RunTransition,
  journal?: RunJournal,
): Promise<Applied> {
  const { event, facts, before = [], error, result, actor, sessionId, handle, ask, resolve } = transition;
  const now = deps.clock.now();
  const at = Math.max(now, run.heads.ts);
  const taken = takeEdge(run.status, event, facts, {
    now: at,
    error,
    result,
    actor,
    sessionId,
    sticky: run.spec.sticky,
  });
  if (!taken.legal) return { applied: false, refusal: taken };
  const writer =
    journal ??
    new RunJournal({ runId: run.run_id, engine: run.spec.engine, attempt: run.attempt_number }, run.heads, deps.clock);
  // Of an engine that stayed, what nobody has read yet: it has printed its last.
  const tail =
    isTerminal(taken.edge.to) && !before.some(({ type }) => type === 'lifecycle.turn.ended')
      ? await readTail(deps, run)
      : [];
  // What cannot be read here is not the run's any more, as after a host that was lost.
  const set = tail === null && run.status !== 'running' ? { ...transition.set, epoch: run.epoch + 1 } : transition.set;
  writer.add([...(tail ?? []), ...before, taken.changed]);
  const flush = writer.take();
  const outcome = await deps.store.commit({
    run_id: run.run_id,
    expect: { status: run.status, epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
    now,
    set: { ...set, status: taken.edge.to, error, result },
    journal: flush ?? undefined,
    turn: turnIn(before, run),
    handle,
    ask,
    resolve,
    create: isInterrupted(run, error) ? ((await deps.retryInterrupted?.(run, handle)) ?? undefined) : undefined,
    deliveries: buildDeliveries(deps.hooks ?? [], deps.ids, run, {
      edge: taken.edge,
      at,
      attempt: set?.attempt_number ?? run.attempt_number,
      error: error ?? null,
      ask,
      url: deps.runUrl?.(run.run_id) ?? null,
    }),
  });
  if (!outcome.committed) return { applied: false, conflict: outcome.reason };
  const after: RunRecord = {
    ...run,
    status: taken.edge.to,
    attempt_number: set?.attempt_number ?? run.attempt_number,
    epoch: set?.epoch ?? run.epoch,
    crashes: taken.edge.to === 'waiting_user' ? 0 : run.crashes,
    error: error ?? run.error,
    result: result === undefined ? run.result : result,
    updated_at: now,
    heads: outcome.heads,
  };
  return { applied: true, edge: taken.edge, run: after };
}

// A stop of Parley cut the turn off, and nothing else is known to be wrong with it.
function isInterrupted({ status }: RunRecord, error: RunError | undefined): boolean {
  return (
    status === 'running' &&
    error?.code === 'ORCHESTRATOR_RESTART_INTERRUPTED' &&
    error.details?.['reason'] === undefined
  );
}

// The counts of the turn that ends with this change, if one does.
function turnIn(drafts: readonly RaspDraft[], run: RunRecord): TurnCounts | undefined {
  const ended = drafts.find(({ type }) => type === 'lifecycle.turn.ended');
  if (!ended) return undefined;
  const { parser, completion } = ended.data as RaspData['lifecycle.turn.ended'];
  return { attempt_number: run.attempt_number, parser, completion };
}
