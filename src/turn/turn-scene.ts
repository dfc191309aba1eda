// A turn that is being played, whoever plays it: what it began with, and how what it left is weighed and stored.
import { buildHandle } from '../engines/registry.js';
import type { Engine } from '../engines/engine.js';
import type { TurnParser } from '../engines/turn-parser.js';
import { parseJson, type Json } from '../kernel/json.js';
import type { ChildEnd } from '../process/child.js';
import type { RaspDraft } from '../rasp/draft.js';
import type { TurnEvidence } from '../run/evidence.js';
import { NO_FACTS } from '../run/guards.js';
import { asResumeFailure, type OutputCheck, type RunError } from '../run/judge-completion.js';
import { RequestError } from '../run/request-error.js';
import { schemaChecks } from '../schema-check/schema-checks.js';
import type { RuntimeOptions } from '../run/runtime-options.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { InteractionRecord, RunRecord } from '../store/store.js';
import { applyRunEvent, type Applied, type RunTransition } from '../journal/apply-run-event.js';
import { concludeTurn, type TurnConclusion } from './conclude-turn.js';
import type { OrchestratorDeps } from '../journal/deps.js';
import type { summariseParser } from './parser-summary.js';
import { isSessionThere } from './session-there.js';
import type { TurnControl } from './turn-control.js';
import { LostRunError, type TurnWriter } from './turn-writer.js';
import { writeResult } from './write-result.js';

export interface TurnScene {
  readonly deps: OrchestratorDeps;
  readonly engine: Engine;
  readonly options: RuntimeOptions;
  // The session it continues; null in a first turn.
  readonly handle: EngineSessionHandle | null;
  // What was answered, in a later turn.
  readonly answered: InteractionRecord | null;
  readonly control: TurnControl;
  readonly version: string | undefined;
  readonly writer: TurnWriter;
}

// What a turn left.
export interface Played extends ChildEnd {
  readonly evidence: TurnEvidence;
  readonly remarks: readonly RaspDraft[];
  readonly parser: ReturnType<typeof summariseParser>;
  // The process was still there when the turn was over: its end says nothing of it.
  readonly outlived?: boolean;
  // The session lives in that process and nowhere else.
  readonly sticky?: boolean;
  // The person who was asked for leave has stopped the turn.
  readonly stopped?: boolean;
}

export interface Weighed {
  readonly conclusion: TurnConclusion;
  readonly transition: RunTransition;
}

// Nothing is stored yet, but what was written before.
export async function weigh(
  { deps, engine, options, handle, control, writer }: TurnScene,
  { evidence, remarks, parser, exit, endedByUs, streams, outlived = false, sticky = false, stopped = false }: Played,
): Promise<Weighed> {
  const { run } = writer;
  const found =
    evidence.sessionId === null
      ? null
      : (handle ??
        buildHandle(engine, evidence.sessionId, {
          cwd: run.spec.cwd,
          home: run.spec.home,
          attempt: run.attempt_number,
          sticky,
        }));
  const handleChecked = found !== null && (sticky ? outlived : await isSessionThere(deps, found));
  const output = await checkOutput(run, evidence);
  const now = Math.max(deps.clock.now(), run.heads.ts);
  const interactionId = deps.ids.interaction();
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
    interactionId,
    canceledBy: control.canceledBy,
    streams,
    parser,
    digest: run.heads.digest,
    remarks,
  });
  const { question } = conclusion;
  const transition: RunTransition = {
    ...conclusion.transition,
    // A first turn's session is kept however it ended, so that it can be continued; a later turn never replaces it.
    handle: handle === null && handleChecked && found ? found : undefined,
    ask: question
      ? {
          interaction_id: interactionId,
          attempt_number: run.attempt_number,
          question: JSON.parse(JSON.stringify(question)) as { [key: string]: Json },
          asked_at: now,
          due_at: now + options.session_timeout_sec * 1000,
          // Where the process is all there is, its time is over with that of the question.
          decides: sticky || !options.interactive_require_user_reply,
        }
      : undefined,
  };
  return { conclusion, transition };
}

export async function settle(scene: TurnScene, { transition }: Weighed): Promise<RunRecord> {
  const { deps, control, writer } = scene;
  const { before = [], result } = transition;
  if (control.isLost) throw new LostRunError(`the turn of run ${writer.run.run_id} was given up`);
  const whole =
    result === undefined
      ? before
      : [...before, await writeResult(deps.dataDir, writer.run.run_id, result, () => checkLease(scene))];
  return applied(await applyRunEvent(deps, writer.run, { ...transition, before: whole }, writer.journal));
}

// Nothing is begun, and no answer is given, for a turn that may be another host's by now.
export function checkLease({ deps: { cluster }, writer }: Pick<TurnScene, 'deps' | 'writer'>): void {
  if (cluster && !cluster.mayPlay())
    throw new LostRunError(`run ${writer.run.run_id} may be another host's: the lease of this one is over`);
}

const RETRY_MS = 500;

// A store that is away ends no turn that has begun, as long as it is this host's: what only looks, or may be done
// twice, is tried again.
export async function whileHeld<T>({ cluster, timers }: OrchestratorDeps, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'STORE_UNAVAILABLE') || !cluster?.mayPlay()) throw error;
    }
    await new Promise<void>((resolve) => timers.set(RETRY_MS, resolve));
  }
}

// What it does in another session belongs to no conversation of ours: it must not even begin.
export function stopElsewhere(
  { handle, control }: Pick<TurnScene, 'handle' | 'control'>,
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
  // The result of a turn that did not succeed is not looked at.
  if (schema === undefined || (!evidence.success && !evidence.done)) return { kind: 'not_asked' };
  const value = evidence.done ? evidence.done.result : parseJson(evidence.lastMessage ?? '');
  if (value === undefined) return { kind: 'invalid', problems: 'the last message is not JSON' };
  const problems = await schemaChecks.explainValue({ schema, value, name: 'result', mustRun: true });
  return problems === null ? { kind: 'valid', value } : { kind: 'invalid', problems };
}

// A turn that could not even start its engine. One that was to continue a session has failed to resume, whatever the
// reason; the reason is in the details (D15).
export async function failStart(
  { deps, handle, writer }: Pick<TurnScene, 'deps' | 'handle' | 'writer'>,
  error: RunError,
): Promise<RunRecord> {
  return fail(deps, writer.run, handle === null ? error : asResumeFailure(error));
}

export async function fail(deps: OrchestratorDeps, run: RunRecord, error: RunError): Promise<RunRecord> {
  return applied(await applyRunEvent(deps, run, { event: 'turn.failed', facts: NO_FACTS, error }));
}

export function applied(outcome: Applied): RunRecord {
  if (outcome.applied) return outcome.run;
  throw new LostRunError(
    'conflict' in outcome
      ? `the run was changed by somebody else (${outcome.conflict})`
      : `${outcome.refusal.event} is not possible in ${outcome.refusal.state}`,
  );
}
