// A run and its question as programs get them: by the command line, and over HTTP. Times are ISO, nothing internal is
// in it.
import { toTimestamp } from '../kernel/clock.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { RunError } from '../run/judge-completion.js';
import { parseRuntimeOptions } from '../run/runtime-options.js';
import type { RunState } from '../run/statechart.js';
import type { SalvagedRun } from '../store/salvage.js';
import type { Actor, InteractionRecord, InteractionState, RunRecord, RunSpec } from '../store/store.js';
import type { InteractionSummary, RunSummary, ShortenedPart } from '../store/summary-reader.js';

export interface RunView {
  readonly run_id: string;
  readonly request_id: string;
  readonly status: RunState;
  readonly engine: string;
  readonly execution_mode: ExecutionMode;
  readonly attempt_number: number;
  readonly prompt: string;
  readonly cwd: string;
  readonly model: string | null;
  readonly permission: RunSpec['permission'];
  readonly labels: Readonly<Record<string, string>>;
  readonly continue_from: string | null;
  readonly fork_from: string | null;
  // The interrupted run that it repeats by itself.
  readonly retry_of: string | null;
  readonly created_at: string;
  readonly updated_at: string;
  // How long its questions have waited for a person, all in all; what waits now is not in it.
  readonly waited_ms: number;
  // Since when the running turn has printed nothing, once that is long enough to be shown.
  readonly silent_since: string | null;
  readonly error: RunError | null;
  readonly result: Json | null;
  readonly rasp_seq: number;
  readonly fcmp_seq: number;
  readonly digest: string;
  // What it waits for, if it does.
  readonly interaction: InteractionView | null;
  // Which stored data of the run is damaged, in words; the fields that depend on it have neutral values.
  readonly damage?: readonly string[];
  // Only where sessions.sticky is on: how it waits (null: no claim is made), and until when its process waits for the
  // answer.
  readonly interactive_profile?: InteractiveProfile | null;
  readonly wait_deadline_at?: string | null;
}

// A run as lists show it. `truncated` names the parts that are longer than shown; GET /v1/runs/ID has all of them.
export interface RunSummaryView extends RunView {
  readonly truncated: readonly ShortenedPart[];
}

export interface InteractiveProfile {
  readonly kind: 'resumable' | 'sticky_process';
}

export function profileOf(sticky: boolean): InteractiveProfile {
  return { kind: sticky ? 'sticky_process' : 'resumable' };
}

export type ProfileView = Required<Pick<RunView, 'interactive_profile' | 'wait_deadline_at'>>;

// How a run waits, for a server with sessions.sticky. The deadline is derived from its question.
export function viewProfile(
  { spec: { sticky } }: Pick<RunRecord, 'spec'>,
  pending: Pick<InteractionRecord, 'due_at'> | null,
): ProfileView {
  return {
    interactive_profile: sticky === undefined ? null : profileOf(sticky),
    wait_deadline_at: sticky && pending ? toTimestamp(pending.due_at) : null,
  };
}

export interface InteractionView {
  readonly interaction_id: string;
  readonly run_id: string;
  readonly attempt_number: number;
  readonly state: InteractionState;
  readonly question: JsonObject;
  readonly asked_at: string;
  readonly due_at: string;
  // Its time is over and it still waits: only a person can answer it.
  readonly overdue: boolean;
  readonly answer: {
    readonly at: string;
    readonly response: Json;
    readonly actor: Actor | null;
    readonly finish: boolean;
  } | null;
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
    // Never before the last event: times of events do not go back when the clock does.
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
    ...(spec.sticky === undefined ? {} : viewProfile(run, pending)),
  };
}

export function viewSalvaged({ run, pending, damage }: SalvagedRun, now: number): RunView {
  return { ...viewRun(run, pending, now), ...(damage.length === 0 ? {} : { damage }) };
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
    question: interaction.question,
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

const DEFAULT_NOTICE_SEC = parseRuntimeOptions({}).silence_notice_sec;

// By the time of the last event: a notice of silence has the time of the event before it.
function silentSince(
  { status, spec, heads }: Pick<RunRecord, 'status' | 'spec' | 'heads'>,
  now: number,
): string | null {
  if (status !== 'running') return null;
  const { silence_notice_sec: seconds = DEFAULT_NOTICE_SEC } = spec.runtime_options;
  return typeof seconds === 'number' && now - heads.ts >= seconds * 1000 ? toTimestamp(heads.ts) : null;
}
