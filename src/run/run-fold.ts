// The state of a run, folded from its events. The database rows of a run (its status, questions, session and turn
// counts) are written from this state and from nothing else, so a reader can rebuild and check them at any time.
// Pure. Only events that Parley itself writes (source.parser is "orchestrator") may be folded.
import type { RaspActor, RaspData, RaspSessionHandle } from '../contract/rasp-data.js';
import type { Json, JsonObject } from '../kernel/json.js';
import { FIRST_ATTEMPT } from './attempt.js';
import type { RunError } from './run-error.js';
import { DEFAULT_OPTIONS } from './default-options.js';
import type { EngineSessionHandle } from './session-handle.js';
import { INITIAL_STATE, isTerminal, type RunState } from './statechart.js';
import { createdNeedsProcess } from './waiting/wait-policy.js';

// Recorded in lifecycle.run.created. From version 1 on, every stored session has its event.
export const RUN_FOLD_VERSION = 1;

export type Actor = RaspActor;

export interface CancelRequest {
  readonly at: number;
  readonly actor: Actor | null;
}

export type InteractionState = 'pending' | 'answered' | 'auto_decided' | 'canceled' | 'abandoned';

export interface Resolution {
  readonly at: number;
  readonly response: Json;
  readonly actor: Actor | null;
  readonly idempotency_key: string | null;
  // The answer ends the conversation instead of continuing it.
  readonly finish: boolean;
}

export interface FoldedQuestion {
  readonly interaction_id: string;
  readonly attempt_number: number;
  // As in the event that asked, without the id and the time.
  readonly question: JsonObject;
  readonly state: InteractionState;
  readonly asked_at: number;
  // The end of the session timeout. From then on the question is overdue, or the policy decides it.
  readonly due_at: number;
  // Whether the policy decides at that time (the user's reply is not required).
  readonly decides: boolean;
  readonly resolution: Resolution | null;
}

// The parser's counts of one ended turn, and how the turn was judged.
export type TurnCounts = Pick<RaspData['lifecycle.turn.ended'], 'parser' | 'completion'> & {
  readonly attempt_number: number;
};

// The parts of the request that the fold needs. They never change.
export interface FoldedRequest {
  readonly engine: string;
  readonly cwd: string;
  readonly home: string | null;
  readonly session_timeout_sec: number;
  // Whether the policy decides a question whose time has expired.
  readonly decides: boolean;
}

export interface FoldedRun {
  readonly request: FoldedRequest;
  readonly status: RunState;
  // How many edges of the chart were taken since the fold began; one may lead back to the same state.
  readonly transitions: number;
  readonly attempt_number: number;
  readonly error: RunError | null;
  readonly result: Json | null;
  readonly cancel_requested: CancelRequest | null;
  // How long answered questions waited for a person, in total.
  readonly waited_ms: number;
  // The newest question.
  readonly question: FoldedQuestion | null;
  readonly session: EngineSessionHandle | null;
  // The newest ended turn.
  readonly turn: TurnCounts | null;
}

export interface FoldedEvent {
  readonly type: string;
  readonly attempt_number: number;
  readonly ts: string;
  readonly data: unknown;
}

type Folded = Pick<
  RaspData,
  | 'lifecycle.run.created'
  | 'lifecycle.state.changed'
  | 'lifecycle.turn.ended'
  | 'lifecycle.session.confirmed'
  | 'lifecycle.cancel.requested'
  | 'interaction.requested'
  | 'interaction.reply.accepted'
  | 'interaction.auto_decide.timeout'
>;
type FoldStep<T extends keyof Folded> = (run: FoldedRun, data: Folded[T], event: FoldedEvent) => FoldedRun;

// The state before the first event. `home` is the one part of the request that no event holds.
export function startFold(home: string | null): FoldedRun {
  return {
    request: { engine: '', cwd: '', home, session_timeout_sec: 0, decides: false },
    status: INITIAL_STATE,
    transitions: 0,
    attempt_number: FIRST_ATTEMPT,
    error: null,
    result: null,
    cancel_requested: null,
    waited_ms: 0,
    question: null,
    session: null,
    turn: null,
  };
}

// Cheap for the caller's hot path: most events of a turn do not change the state.
export function isFolded(type: string): boolean {
  return Object.hasOwn(STEPS, type);
}

// Returns the same object if the event changes nothing. Expects events that fit the RASP schema.
export function foldRun(run: FoldedRun, event: FoldedEvent): FoldedRun {
  if (!isFolded(event.type)) return run;
  const step = STEPS[event.type as keyof Folded] as FoldStep<keyof Folded>;
  return step(run, event.data as never, event);
}

// How a question waits, by the stored runtime options and the profile of its run. Total: an option that cannot be read
// has its default, so that a damaged run can still be canceled.
export function waitRules(
  runtimeOptions: JsonObject | undefined,
  needsProcess: boolean,
): Pick<FoldedRequest, 'session_timeout_sec' | 'decides'> {
  const { session_timeout_sec: seconds, interactive_require_user_reply: isRequired } = runtimeOptions ?? {};
  return {
    session_timeout_sec: typeof seconds === 'number' ? seconds : DEFAULT_OPTIONS.session_timeout_sec,
    // A session that ends with its process cannot wait without an end.
    decides:
      needsProcess || !(typeof isRequired === 'boolean' ? isRequired : DEFAULT_OPTIONS.interactive_require_user_reply),
  };
}

const STEPS: { readonly [T in keyof Folded]: FoldStep<T> } = {
  'lifecycle.run.created': (run, data) => {
    const request = {
      engine: data.engine,
      cwd: data.cwd ?? '',
      home: run.request.home,
      ...waitRules(data.runtime_options as JsonObject | undefined, createdNeedsProcess(data)),
    };
    return { ...run, request, session: data.session ? toHandle(request, data.session) : null };
  },
  'lifecycle.state.changed': (run, { to, error, result, actor, updated_at: at }) => {
    const next = {
      ...run,
      status: to,
      transitions: run.transitions + 1,
      error: error === undefined ? run.error : (error as RunError),
      result: result === undefined ? run.result : result,
    };
    if (!isTerminal(to) || run.question?.state !== 'pending') return next;
    const isCanceled = to === 'canceled';
    return resolve(next, run.question.interaction_id, isCanceled ? 'canceled' : 'abandoned', {
      at: Date.parse(at),
      response: null,
      actor: (isCanceled ? actor : null) ?? null,
      idempotency_key: null,
      finish: false,
    });
  },
  'lifecycle.turn.ended': (run, { parser, completion }, { attempt_number }) => ({
    ...run,
    turn: { attempt_number, parser, completion },
  }),
  'lifecycle.session.confirmed': (run, { session }) => ({ ...run, session: toHandle(run.request, session) }),
  'lifecycle.cancel.requested': (run, { requested_at: at, actor }) => ({
    ...run,
    cancel_requested: { at: Date.parse(at), actor: actor ?? null },
  }),
  'interaction.requested': (run, { interaction_id, asked_at, ...question }, { attempt_number, ts }) => {
    // Runs of the first versions have no asked_at.
    const askedAt = Date.parse(asked_at ?? ts);
    return {
      ...run,
      question: {
        interaction_id,
        attempt_number,
        question: JSON.parse(JSON.stringify(question)) as JsonObject,
        state: 'pending',
        asked_at: askedAt,
        due_at: askedAt + Math.round(run.request.session_timeout_sec * 1000),
        decides: run.request.decides,
        resolution: null,
      },
    };
  },
  'interaction.reply.accepted': (run, { interaction_id: id, accepted_at: at, ...reply }) =>
    nextTurn(
      resolve(run, id, 'answered', {
        at: Date.parse(at),
        response: reply.response ?? null,
        actor: reply.actor ?? null,
        idempotency_key: reply.idempotency_key ?? null,
        finish: reply.finish ?? false,
      }),
    ),
  'interaction.auto_decide.timeout': (run, { interaction_id: id, decided_at: at, policy, response }, { ts }) =>
    nextTurn(
      resolve(run, id, 'auto_decided', {
        at: Date.parse(at ?? ts),
        response: response ?? null,
        actor: null,
        idempotency_key: null,
        finish: policy === 'finish',
      }),
    ),
};

function resolve(
  run: FoldedRun,
  id: string,
  state: Exclude<InteractionState, 'pending'>,
  resolution: Resolution,
): FoldedRun {
  const { question } = run;
  if (question?.interaction_id !== id || question.state !== 'pending') return run;
  return {
    ...run,
    waited_ms: run.waited_ms + Math.max(0, resolution.at - question.asked_at),
    question: { ...question, state, resolution },
  };
}

function nextTurn(run: FoldedRun): FoldedRun {
  return { ...run, attempt_number: run.attempt_number + 1 };
}

function toHandle({ engine, cwd, home }: FoldedRequest, session: RaspSessionHandle): EngineSessionHandle {
  return {
    engine,
    handle_type: session.handle_type,
    handle_value: session.session_id,
    cwd,
    home,
    created_at_attempt: session.created_at_attempt,
  };
}
