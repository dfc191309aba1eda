// A running turn: what it started with, and how its output is judged and its outcome stored. The same for turns in
// their own process and for turns in a resident one.
import { buildHandle } from '../engines/registry.js';
import type { Engine } from '../engines/engine.js';
import type { TurnParser } from '../engines/turn-parser.js';
import { parseJson } from '../kernel/json.js';
import type { ChildEnd } from '../process/child.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import { asResumeFailure, type OutputCheck } from '../run/judge-completion.js';
import type { RunError } from '../run/run-error.js';
import { RequestError } from '../run/request-error.js';
import { schemaChecks } from '../schema-check/schema-checks.js';
import type { RuntimeOptions } from '../run/runtime-options.js';
import { describeSession, type EngineSessionHandle } from '../run/session-handle.js';
import { waitPolicyOf } from '../run/waiting/wait-policy.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied, type ApplyDeps, type RunTransition } from '../journal/apply-run-event.js';
import { concludeTurn, type TurnConclusion } from './conclude-turn.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { summariseParser } from './parser-summary.js';
import { isSessionThere } from './session-there.js';
import type { TurnControl } from './turn-control.js';
import { LostRunError, type TurnWriter } from './turn-writer.js';
import { writeResult } from './write-result.js';

export type TurnDeps = ApplyDeps & Pick<OrchestratorDeps, 'runtime' | 'timers' | 'ownership' | 'peers'>;

export interface TurnContext {
  readonly deps: TurnDeps;
  readonly engine: Engine;
  readonly options: RuntimeOptions;
  // The session it continues; null in a first turn.
  readonly handle: EngineSessionHandle | null;
  // The answered question, in a later turn.
  readonly answered: InteractionRecord | null;
  readonly control: TurnControl;
  readonly version: string | undefined;
  readonly writer: TurnWriter;
}

// Everything that is known when the engine has exited or waits.
export interface TurnOutput extends ChildEnd {
  readonly evidence: TurnEvidence;
  readonly remarks: readonly RaspDraft[];
  readonly parser: ReturnType<typeof summariseParser>;
  // The process still ran when the turn ended, so its exit says nothing about the turn.
  readonly outlived?: boolean;
  // The person who was asked for permission has stopped the turn.
  readonly stopped?: boolean;
}

export interface TurnOutcome {
  readonly conclusion: TurnConclusion;
  readonly transition: RunTransition;
}

// Stores nothing.
export async function judgeTurn(
  { deps, engine, options, handle, control, writer }: TurnContext,
  { evidence, remarks, parser, exit, endedByUs, streams, outlived = false, stopped = false }: TurnOutput,
): Promise<TurnOutcome> {
  const { run } = writer;
  const policy = waitPolicyOf(run.spec);
  const found =
    evidence.sessionId === null
      ? null
      : (handle ??
        buildHandle(engine, evidence.sessionId, {
          cwd: run.spec.cwd,
          home: run.spec.home,
          attempt: run.attempt_number,
          type: policy.handleType,
        }));
  const handleChecked = found !== null && (policy.needsProcess ? outlived : await isSessionThere(deps, found));
  const output = await checkOutput(run, evidence);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  const conclusion = concludeTurn({
    facts: {
      mode: run.spec.execution_mode,
      attempt: run.attempt_number,
      maxAttempt: options.max_attempt,
      evidence,
      exit,
      endedByUs,
      outlived,
      stopped,
      resumedFrom: handle?.handle_value ?? null,
      handleChecked,
      output,
      limits: options,
    },
    now,
    interactionId: deps.ids.interaction(),
    canceledBy: control.canceledBy,
    streams,
    parser,
    digest: run.heads.digest,
    remarks,
  });
  // The session of a first turn is kept however the turn ended, so that it can be continued. A later turn never
  // replaces it.
  const confirmed =
    handle === null && handleChecked && found
      ? [draft('lifecycle.session.confirmed', { session: describeSession(found) })]
      : [];
  const { transition } = conclusion;
  return { conclusion, transition: { ...transition, before: [...confirmed, ...(transition.before ?? [])] } };
}

export async function commitTurn(context: TurnContext, { transition }: TurnOutcome): Promise<RunRecord> {
  const { deps, control, writer } = context;
  const { before = [], result } = transition;
  if (control.isLost) throw new LostRunError(`the turn of run ${writer.run.run_id} was abandoned`);
  const whole =
    result === undefined
      ? before
      : [
          ...before,
          await writeResult({
            dataDir: deps.dataDir,
            runId: writer.run.run_id,
            result,
            check: () => checkLease(context),
          }),
        ];
  return expectApplied(await applyRunEvent(deps, writer.run, { ...transition, before: whole }, writer.journal));
}

// Checked before anything is started or answered: without a lease the turn may belong to another host by now.
export function checkLease({ deps: { ownership }, writer }: Pick<TurnContext, 'deps' | 'writer'>): void {
  if (!ownership.mayRun())
    throw new LostRunError(`run ${writer.run.run_id} may belong to another host: the lease of this one has expired`);
}

const RETRY_MS = 500;

// Repeats a read or an idempotent write while the store is unavailable and the turn still belongs to this host: an
// outage does not end a turn that has started.
export async function whileHeld<T>(
  { ownership, timers }: Pick<OrchestratorDeps, 'ownership' | 'timers'>,
  work: () => Promise<T>,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'STORE_UNAVAILABLE') || !ownership.mayRun()) throw error;
    }
    await new Promise<void>((resolve) => timers.set(RETRY_MS, resolve));
  }
}

// Work in another session belongs to none of our conversations, so the engine is ended before it starts that work.
export function stopElsewhere(
  { handle, control }: Pick<TurnContext, 'handle' | 'control'>,
  { boundSession }: TurnParser,
): void {
  if (handle !== null && boundSession !== null && boundSession !== handle.handle_value) control.stopOtherSession();
}

// Checks the agent's result, or its last message, against the output schema. The number of these checks is bounded by
// the slots.
async function checkOutput(
  { spec: { output_schema: schema } }: RunRecord,
  evidence: TurnEvidence,
): Promise<OutputCheck> {
  // Only the result of a successful turn is checked.
  if (schema === undefined || (!evidence.success && !evidence.done)) return { kind: 'not_asked' };
  const value = evidence.done ? evidence.done.result : parseJson(evidence.lastMessage ?? '');
  if (value === undefined) return { kind: 'invalid', problems: null };
  const problems = await schemaChecks.explainValue({ schema, value, name: 'result', mustRun: true });
  return problems === null ? { kind: 'valid', value } : { kind: 'invalid', problems };
}

// Fails a turn whose engine could not be started. A turn that was to continue a session has failed to resume, whatever
// the reason; the reason is in the details (D15).
export async function failStart(
  { deps, handle, writer }: Pick<TurnContext, 'deps' | 'handle' | 'writer'>,
  error: RunError,
): Promise<RunRecord> {
  await writer.close();
  return failTurn({ deps, writer }, handle === null ? error : asResumeFailure(error));
}

// Everything that was added to the writer is stored.
export async function failTurn(
  { deps, writer }: Pick<TurnContext, 'deps' | 'writer'>,
  error: RunError,
): Promise<RunRecord> {
  const transition = { event: 'turn.failed', facts: NO_FACTS, error } as const;
  return expectApplied(await applyRunEvent(deps, writer.run, transition, writer.journal));
}

export function expectApplied(outcome: Applied): RunRecord {
  if (outcome.applied) return outcome.run;
  throw new LostRunError(
    'conflict' in outcome
      ? `the run was changed by another writer (${outcome.conflict})`
      : `${outcome.refusal.event} is not possible in ${outcome.refusal.state}`,
  );
}
