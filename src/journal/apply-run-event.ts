// The only function that changes a run's state: it follows an edge of the chart and appends the events of the change in
// one transaction. The store derives the rows from the events.
import type { RaspDraft } from '../rasp/draft.js';
import type { GuardFacts } from '../run/guards.js';
import { ConversationFold, foldInputOf } from '../fcmp/fold.js';
import type { Clock } from '../kernel/clock.js';
import { invariant } from '../kernel/invariant.js';
import { RequestError } from '../run/request-error.js';
import type { RunError } from '../run/run-error.js';
import { isTerminal, type Edge, type RunEvent, type Step } from '../run/statechart.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { AppendOutcome, InteractionRecord, RunRecord, Store } from '../store/store.js';
import { buildDeliveries } from './build-deliveries.js';
import type { OrchestratorDeps } from './deps.js';
import { everyEvent } from './every-event.js';
import { RunJournal, type JournalOwner } from './run-journal.js';
import { stateOf, withState } from './run-state.js';
import { takeEdge, type EdgeDetails } from './take-edge.js';
import { readTail } from './unread-tail.js';

export interface RunTransition extends Pick<EdgeDetails, 'result' | 'actor' | 'sessionId'> {
  readonly event: RunEvent;
  readonly facts: GuardFacts;
  readonly error?: RunError | undefined;
  // Events of the same transaction, stored right before the change of state.
  readonly before?: readonly RaspDraft[];
  // The new epoch, if a turn starts.
  readonly epoch?: number;
  // The output of the engine after the last stored turn stays unread, because a part of it may be stored already.
  readonly leavesTail?: boolean;
  // The open question of a waiting run, if the caller has already read it.
  readonly pending?: InteractionRecord | null;
}

export type Applied =
  | { readonly applied: true; readonly edge: Edge; readonly run: RunRecord }
  // The chart or a guard refuses the event. Nothing was written.
  | { readonly applied: false; readonly refusal: Extract<Step, { legal: false }> }
  // Another writer committed first. Nothing was written.
  | { readonly applied: false; readonly conflict: Extract<AppendOutcome, { committed: false }>['reason'] };

export type ApplyDeps = Pick<
  OrchestratorDeps,
  'store' | 'clock' | 'ids' | 'hooks' | 'runUrl' | 'dataDir' | 'files' | 'retryInterrupted'
>;

// `run` is the run as the caller read it. If the store has newer events, the change is refused.
export async function applyRunEvent(
  deps: ApplyDeps,
  run: RunRecord,
  transition: RunTransition,
  journal?: RunJournal,
): Promise<Applied> {
  const { event, facts, before = [], error, result, actor, sessionId } = transition;
  const now = deps.clock.now();
  const at = Math.max(now, run.heads.ts);
  const taken = takeEdge(run.status, event, facts, {
    now: at,
    error,
    result,
    actor,
    sessionId,
    chart: waitPolicyOf(run.spec).chart,
  });
  if (!taken.legal) return { applied: false, refusal: taken };
  const writer = journal ?? (await continueJournal(deps, run, transition));
  // A resident engine may have printed after its last turn. These lines belong to the run, so they are read before the
  // run ends. The end of a turn that ran the engine includes its output.
  const readsTail = transition.leavesTail !== true && !before.some(({ type }) => type === 'lifecycle.turn.ended');
  const tail = isTerminal(taken.edge.to) && readsTail ? await readTail(deps, run) : [];
  // Lines that cannot be read on this host are left out. The incremented epoch shows that to verify, as after a lost
  // host.
  const epoch = tail === null && run.status !== 'running' ? run.epoch + 1 : transition.epoch;
  writer.add([...(tail ?? []), ...before, taken.changed]);
  const drained = writer.drain();
  invariant(drained, 'a change of state has an event');
  const { after } = drained;
  const outcome = await deps.store.append({
    run_id: run.run_id,
    expect: { epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
    now,
    epoch,
    ...drained,
    create: isInterrupted(run, error) ? ((await deps.retryInterrupted?.(run, after.session)) ?? undefined) : undefined,
    deliveries: buildDeliveries(deps.hooks ?? [], deps.ids, run, {
      edge: taken.edge,
      at,
      after,
      url: deps.runUrl?.(run.run_id) ?? null,
    }),
  });
  if (!outcome.committed) return { applied: false, conflict: outcome.reason };
  const crashes = taken.edge.to === 'waiting_user' ? 0 : run.crashes;
  const changed = { ...withState(run, after), epoch: epoch ?? run.epoch, crashes, updated_at: now };
  return { applied: true, edge: taken.edge, run: { ...changed, heads: outcome.heads } };
}

// The journal of a turn that has just begun. Nothing was printed, so the conversation holds nothing back.
export function journalOfNewTurn(clock: Clock, run: RunRecord): RunJournal {
  return new RunJournal(ownerOf(run), { heads: run.heads, state: stateOf(run) }, clock);
}

function ownerOf({ run_id: runId, spec, attempt_number: attempt }: RunRecord): JournalOwner {
  return { runId, engine: spec.engine, attempt };
}

// Only the end of a wait resolves a question, so its state is needed only then.
async function continueJournal(
  { store, clock }: ApplyDeps,
  run: RunRecord,
  { pending }: RunTransition,
): Promise<RunJournal> {
  const question = run.status !== 'waiting_user' ? null : (pending ?? (await store.loadPendingInteraction(run.run_id)));
  const fold = run.status === 'running' ? await readFold(store, run.run_id) : undefined;
  return new RunJournal(ownerOf(run), { heads: run.heads, state: stateOf(run, question), fold }, clock);
}

// The conversation may hold back lines of the running turn. If the journal is damaged, whatever is wrong with it, the
// run still ends, and these lines stay out of the conversation.
async function readFold(store: Pick<Store, 'readJournal'>, runId: string): Promise<ConversationFold | undefined> {
  const fold = new ConversationFold(runId);
  try {
    for await (const event of everyEvent(store, runId)) fold.push(foldInputOf(event));
    return fold;
  } catch (error) {
    if (error instanceof RequestError) throw error;
    return undefined;
  }
}

// Parley stopped during the turn, and no other reason for its end is known.
function isInterrupted({ status }: RunRecord, error: RunError | undefined): boolean {
  return (
    status === 'running' &&
    error?.code === 'ORCHESTRATOR_RESTART_INTERRUPTED' &&
    error.details?.['reason'] === undefined
  );
}
