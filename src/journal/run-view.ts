// A run and its question in the form that programs get on the command line and over HTTP. Times are ISO, and internal
// fields are left out.
import { toTimestamp } from '../kernel/clock.js';
import type { Json } from '../kernel/json.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { RunError } from '../run/run-error.js';
import { DEFAULT_OPTIONS } from '../run/default-options.js';
import type { RunState } from '../run/statechart.js';
import { recordedProfile, waitPolicyOf, type InteractiveProfile } from '../run/waiting/wait-policy.js';
import type { Answer, Question } from './question-view.js';
import type { SalvagedRun } from '../store/salvage.js';
import type { InteractionRecord, InteractionState, RunRecord, RunSpec } from '../store/store.js';
import type { InteractionSummary, RunSummary, ShortenedPart } from '../store/summary-reader.js';

/** A run as it is now. */
export interface RunView {
  /** The id of the run: `run_` and 26 letters and digits. */
  readonly run_id: string;
  /** The idempotency key with which the run was created. */
  readonly request_id: string;
  /** The state of the run. `waiting_user`: it waits for you, and `interaction` is the open question. */
  readonly status: RunState;
  /** The engine that runs the agent, for instance `codex`. */
  readonly engine: string;
  /** `interactive`: the agent may ask questions. `auto`: it runs unattended. */
  readonly execution_mode: ExecutionMode;
  /** The number of the current turn, from 1. */
  readonly attempt_number: number;
  /** The prompt of the first turn. */
  readonly prompt: string;
  /** The folder in which the agent works. */
  readonly cwd: string;
  /** The model; null: the engine's default. */
  readonly model: string | null;
  /** What the agent may do without asking. */
  readonly permission: RunSpec['permission'];
  /** Your own labels. */
  readonly labels: Readonly<Record<string, string>>;
  /** The run whose session this run continues. */
  readonly continue_from: string | null;
  /** The run whose conversation was copied at the start of this run. */
  readonly fork_from: string | null;
  /** The interrupted run that Parley repeats with this one (setting `recovery.running`). */
  readonly retry_of: string | null;
  /** When the run was created (ISO 8601). */
  readonly created_at: string;
  /** When the run last changed (ISO 8601). */
  readonly updated_at: string;
  /** How long its questions have waited for a person in total, without the question that is open now. */
  readonly waited_ms: number;
  /** Since when the running turn has printed nothing; null until that is longer than `silence_notice_sec`. */
  readonly silent_since: string | null;
  /** Why the run failed; null if it did not. */
  readonly error: RunError | null;
  /** The result of a run that succeeded. */
  readonly result: Json | null;
  /** The number of the last RASP event. */
  readonly rasp_seq: number;
  /** The number of the last FCMP event. */
  readonly fcmp_seq: number;
  /** The digest of the RASP journal: store it elsewhere to detect a later change. */
  readonly digest: string;
  /** The open question; null if the run does not wait. */
  readonly interaction: InteractionView | null;
  /**
   * The run was interrupted, and its last output is still to be read: its end is not known yet, so that only `cancel()`
   * can change it. Absent: no.
   */
  readonly recovering?: true;
  /** Descriptions of stored data that is damaged; the affected fields have neutral values. Absent: no damage. */
  readonly damage?: readonly string[];
  /** How the run waits; null: not recorded. Present only if the setting allows runs that need their process. */
  readonly interactive_profile?: InteractiveProfile | null;
  /**
   * How long the process of the run waits for the answer. Present only if the setting allows runs that need their
   * process.
   */
  readonly wait_deadline_at?: string | null;
}

/** A run as lists show it: every part is bounded in size. */
export interface RunSummaryView extends RunView {
  /** The parts that are longer than shown. `get()` returns the complete run. */
  readonly truncated: readonly ShortenedPart[];
}

export type ProfileView = Required<Pick<RunView, 'interactive_profile' | 'wait_deadline_at'>>;

// How a run waits. The deadline is that of its question.
export function viewProfile(
  { spec }: Pick<RunRecord, 'spec'>,
  pending: Pick<InteractionRecord, 'due_at'> | null,
): ProfileView {
  return {
    interactive_profile: recordedProfile(spec),
    wait_deadline_at: waitPolicyOf(spec).needsProcess && pending ? toTimestamp(pending.due_at) : null,
  };
}

/** A question of a run, and its answer. */
export interface InteractionView {
  /** The id of the question: `int_` and 26 letters and digits. */
  readonly interaction_id: string;
  /** The run that asks. */
  readonly run_id: string;
  /** The turn that asked, from 1. */
  readonly attempt_number: number;
  /**
   * `pending`: open. `auto_decided`: decided by the policy of the run. `abandoned`: the run ended without an answer.
   */
  readonly state: InteractionState;
  /** The question, discriminated by `kind`. */
  readonly question: Question;
  /** When it was asked (ISO 8601). */
  readonly asked_at: string;
  /** When its time limit ends (ISO 8601). */
  readonly due_at: string;
  /** The time limit has passed and the question is still open, because only a person may answer it. */
  readonly overdue: boolean;
  /** The answer; null while the question is open. */
  readonly answer: Answer | null;
}

export function viewRun(
  run: RunRecord | RunSummary,
  pending: InteractionRecord | InteractionSummary | null,
  now: number,
): RunView {
  const { spec, heads } = run;
  return {
    run_id: run.run_id,
    request_id: run.request_id,
    status: run.status,
    engine: spec.engine,
    execution_mode: spec.execution_mode,
    attempt_number: run.attempt_number,
    prompt: spec.prompt,
    cwd: spec.cwd,
    model: spec.model ?? null,
    permission: spec.permission,
    labels: spec.labels,
    continue_from: spec.continue_from ?? null,
    fork_from: spec.fork_from?.run_id ?? null,
    retry_of: spec.retry_of ?? null,
    created_at: toTimestamp(run.created_at),
    // Never before the last event: event times never go back, even if the clock does.
    updated_at: toTimestamp(Math.max(run.updated_at, heads.ts)),
    waited_ms: run.waited_ms,
    silent_since: silentSince(run, now),
    error: run.error,
    result: run.result,
    rasp_seq: heads.rasp_seq,
    fcmp_seq: heads.fcmp_seq,
    digest: heads.digest,
    interaction: pending && viewInteraction(pending, now),
    // Recorded only while the setting was on.
    ...(recordedProfile(spec) === null ? {} : viewProfile(run, pending)),
  };
}

export function viewSalvaged({ run, pending, damage }: SalvagedRun, now: number): RunView {
  return { ...viewRun(run, pending, now), ...(damage.length === 0 ? {} : { damage: damage.map(({ text }) => text) }) };
}

export function viewRunSummary(run: RunSummary, pending: InteractionSummary | null, now: number): RunSummaryView {
  return { ...viewRun(run, pending, now), truncated: [...new Set([...run.truncated, ...(pending?.truncated ?? [])])] };
}

export function viewInteraction(interaction: InteractionRecord | InteractionSummary, now: number): InteractionView {
  const { resolution } = interaction;
  return {
    interaction_id: interaction.interaction_id,
    run_id: interaction.run_id,
    attempt_number: interaction.attempt_number,
    state: interaction.state,
    // Stored questions were checked when they were read (store/stored-shapes.ts).
    question: interaction.question as unknown as Question,
    asked_at: toTimestamp(interaction.asked_at),
    due_at: toTimestamp(interaction.due_at),
    overdue: interaction.state === 'pending' && now > interaction.due_at,
    answer: resolution && {
      at: toTimestamp(resolution.at),
      response: resolution.response,
      actor: resolution.actor,
      finish: resolution.finish,
    },
  };
}

// Uses the time of the last event, because a silence event has the time of the event before it.
function silentSince(
  { status, spec, heads }: Pick<RunRecord, 'status' | 'spec' | 'heads'>,
  now: number,
): string | null {
  if (status !== 'running') return null;
  const { silence_notice_sec: seconds = DEFAULT_OPTIONS.silence_notice_sec } = spec.runtime_options;
  return typeof seconds === 'number' && now - heads.ts >= seconds * 1000 ? toTimestamp(heads.ts) : null;
}
