// How a turn ended: one table, read from the top; the first line that fits decides.
// Exit code 0 is never success by itself: every one of the CLIs exits 0 after some failures.
import type { Phrase } from '../kernel/fill-template.js';
import { phraseOfError } from '../messages/message-template.js';
import type { RunEvent } from '../contract/chart-names.js';
import { invariant } from '../kernel/invariant.js';
import type { Json, JsonObject } from '../kernel/json.js';
import { clip } from '../kernel/redact.js';
import type { ExecutionMode } from './attempt.js';
import type { EngineFailure, TurnEvidence } from './evidence.js';
import { mergeQuestions, type Question } from './interaction.js';
import type { RequestError } from './request-error.js';
import { runError, type RunError } from './run-error.js';
import { limitReached, type TurnLimits } from './turn-limits.js';

const MAX_PROMPT_CHARS = 8000;

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export type OutputCheck =
  | { readonly kind: 'not_asked' }
  | { readonly kind: 'valid'; readonly value: Json }
  // Without problems: it is not JSON.
  | { readonly kind: 'invalid'; readonly problems: readonly Phrase[] | null };

export interface TurnFacts {
  readonly mode: ExecutionMode;
  readonly attempt: number;
  readonly maxAttempt: number;
  readonly evidence: TurnEvidence;
  readonly exit: Exit;
  // Set when Parley itself ended the process.
  readonly endedByUs:
    | 'canceled'
    | 'shutdown'
    | 'turn_timeout'
    | 'idle_timeout'
    | 'tool_timeout'
    | 'runaway'
    | 'other_session'
    | null;
  // The process was still there when the turn was over: its end says nothing of it.
  readonly outlived?: boolean;
  // The person who was asked for permission has stopped the turn.
  readonly stopped?: boolean;
  // The session id this turn was to continue; null for a first turn.
  readonly resumedFrom: string | null;
  // The session was looked for and is there; only then may a run wait for an answer.
  readonly handleChecked: boolean;
  readonly output: OutputCheck;
  // The limits of the turn, for the message of one that was reached.
  readonly limits?: TurnLimits;
}

export type Verdict = {
  readonly rule: string;
  readonly completion: 'completed' | 'awaiting_user_input' | 'interrupted' | 'unknown';
  readonly reasonCode: string;
} & (
  | { readonly event: Extract<RunEvent, 'turn.succeeded'>; readonly result: Json | undefined }
  | { readonly event: Extract<RunEvent, 'turn.failed'>; readonly error: RunError }
  | { readonly event: Extract<RunEvent, 'turn.needs_input'>; readonly question: Question }
  | { readonly event: Extract<RunEvent, 'run.canceled'> }
);

interface Rule {
  readonly id: string;
  readonly when: (facts: TurnFacts) => boolean;
  readonly verdict: (facts: TurnFacts) => Omit<Verdict, 'rule'> & object;
}

const interactive = (facts: TurnFacts) => facts.mode === 'interactive';
const asked = (facts: TurnFacts) => facts.evidence.questions.length > 0;
const succeeded = (facts: TurnFacts) => facts.evidence.success || facts.evidence.done !== null;
// A conversation whose turn ended well without a done marker continues: reply or finish.
const talks = (facts: TurnFacts) =>
  interactive(facts) && facts.evidence.success && facts.output.kind === 'not_asked' && !facts.evidence.done;
const stopped = (facts: TurnFacts) => interactive(facts) && facts.stopped === true;
const wantsPerson = (facts: TurnFacts) => asked(facts) || stopped(facts) || talks(facts);
const died = (facts: TurnFacts) => !facts.outlived && (facts.exit.signal !== null || facts.exit.code !== 0);

const STOPPED: Question = {
  kind: 'open_text',
  prompt: 'You stopped the turn. Say how to go on, or finish.',
  options: [],
  channel: 'conversation',
};

export const RULES: readonly Rule[] = [
  {
    id: 'canceled',
    when: (f) => f.endedByUs === 'canceled',
    verdict: () => ({ event: 'run.canceled', completion: 'interrupted', reasonCode: 'CANCELED_BY_USER' }),
  },
  {
    id: 'shut down',
    when: (f) => f.endedByUs === 'shutdown',
    verdict: (f) => failTurn(f, runError('ORCHESTRATOR_RESTART_INTERRUPTED.shutdown')),
  },
  {
    id: 'turn timeout',
    when: (f) => f.endedByUs === 'turn_timeout',
    verdict: (f) => failTurn(f, limitReached('turn_timeout_sec', f.limits)),
  },
  {
    id: 'idle timeout',
    when: (f) => f.endedByUs === 'idle_timeout',
    verdict: (f) => failTurn(f, limitReached('idle_timeout_sec', f.limits)),
  },
  {
    id: 'tool timeout',
    when: (f) => f.endedByUs === 'tool_timeout',
    verdict: (f) => failTurn(f, limitReached('tool_timeout_sec', f.limits)),
  },
  {
    id: 'runaway',
    when: (f) => f.endedByUs === 'runaway',
    verdict: (f) => failTurn(f, runError('ENGINE_TURN_FAILED.runaway'), 'interrupted', 'RUNAWAY'),
  },
  {
    id: 'resume not confirmed',
    when: (f) => f.endedByUs === 'other_session' || (f.resumedFrom !== null && f.evidence.sessionId !== f.resumedFrom),
    verdict: resumeFailed,
  },
  { id: 'engine failed', when: (f) => f.evidence.failure !== null, verdict: engineFailed },
  { id: 'process died', when: died, verdict: processDied },
  {
    id: 'question in auto mode',
    when: (f) => asked(f) && !interactive(f),
    verdict: (f) => failTurn(f, runError('AUTO_MODE_CANNOT_ASK'), 'awaiting_user_input'),
  },
  {
    id: 'would wait, no session',
    when: (f) => wantsPerson(f) && !canResume(f),
    verdict: (f) => failTurn(f, runError('SESSION_RESUME_FAILED.no_session'), 'awaiting_user_input', 'HANDLE_MISSING'),
  },
  {
    id: 'would wait, attempts used up',
    when: (f) => wantsPerson(f) && f.attempt >= f.maxAttempt,
    verdict: (f) =>
      failTurn(
        f,
        runError('INTERACTIVE_MAX_ATTEMPT_EXCEEDED', { attempt: f.attempt, limit: f.maxAttempt }),
        'awaiting_user_input',
      ),
  },
  { id: 'question', when: asked, verdict: needsInput },
  {
    id: 'stopped by the person',
    when: stopped,
    verdict: (f) => ({ ...needsInput(f), reasonCode: 'STOPPED_BY_USER', question: STOPPED }),
  },
  { id: 'output invalid', when: (f) => succeeded(f) && f.output.kind === 'invalid', verdict: outputInvalid },
  {
    id: 'done marker',
    when: (f) => f.evidence.done !== null,
    verdict: (f) => ({
      event: 'turn.succeeded',
      completion: 'completed',
      reasonCode: 'DONE_MARKER',
      result: f.output.kind === 'valid' ? f.output.value : f.evidence.done?.result,
    }),
  },
  {
    id: 'output valid',
    when: (f) => f.evidence.success && f.output.kind === 'valid',
    verdict: (f) => ({
      event: 'turn.succeeded',
      completion: 'completed',
      reasonCode: 'OUTPUT_VALID',
      result: f.output.kind === 'valid' ? f.output.value : undefined,
    }),
  },
  { id: 'conversation goes on', when: talks, verdict: needsInput },
  {
    id: 'engine succeeded',
    when: (f) => f.evidence.success,
    verdict: (f) => ({
      event: 'turn.succeeded',
      completion: 'completed',
      reasonCode: 'ENGINE_SUCCESS',
      result: f.evidence.lastMessage ?? undefined,
    }),
  },
  { id: 'unknown', when: () => true, verdict: unknown },
];

export function judgeCompletion(facts: TurnFacts): Verdict {
  const rule = RULES.find((candidate) => candidate.when(facts));
  invariant(rule, 'the last rule fits everything');
  return { rule: rule.id, ...rule.verdict(facts) } as Verdict;
}

function canResume(facts: TurnFacts): boolean {
  return facts.evidence.sessionId !== null && facts.handleChecked;
}

function failTurn(
  facts: TurnFacts,
  error: RunError,
  completion: Verdict['completion'] = 'interrupted',
  reasonCode: string = error.code,
) {
  return {
    event: 'turn.failed' as const,
    completion,
    reasonCode,
    error: withUnanswered(error, facts.evidence.questions),
  };
}

// Adds the question that can no longer be answered.
export function withUnanswered(error: RunError, questions: readonly Question[]): RunError {
  const question = mergeQuestions(questions);
  return question ? { ...error, details: { ...error.details, unanswered: describe(question) } } : error;
}

function describe(question: Question): JsonObject {
  return JSON.parse(
    JSON.stringify({
      kind: question.kind,
      prompt: question.prompt,
      options: question.options,
      fields: question.fields,
      default: question.default,
    }),
  ) as JsonObject;
}

// Turns the error of a first turn into that of a turn that had to continue a session. The error becomes its cause.
export function asResumeFailure(cause: RunError | RequestError): RunError {
  if (cause.code === 'SESSION_RESUME_FAILED') return cause;
  return {
    ...runError('SESSION_RESUME_FAILED.cause', { reason: phraseOfError(cause) }),
    details: { ...('details' in cause ? cause.details : {}), cause: { code: cause.code, message: cause.message } },
  };
}

function resumeFailed(facts: TurnFacts) {
  const { sessionId: other, complaint } = facts.evidence;
  const session = facts.resumedFrom ?? '';
  if (other !== null) {
    const error = runError('SESSION_RESUME_FAILED.other_session', { session, other });
    return failTurn(facts, error, 'interrupted', 'SESSION_CHANGED');
  }
  const error = complaint
    ? runError('SESSION_RESUME_FAILED.not_confirmed_reason', { session, reason: complaint.message })
    : runError('SESSION_RESUME_FAILED.not_confirmed', { session });
  return withCause(facts, failTurn(facts, error, 'interrupted', 'SESSION_NOT_CONFIRMED'));
}

// Adds the error that a first turn would have failed with.
function withCause(facts: TurnFacts, verdict: ReturnType<typeof failTurn>): ReturnType<typeof failTurn> {
  const own = facts.evidence.failure !== null ? engineFailed(facts) : died(facts) ? processDied(facts) : null;
  if (own === null) return verdict;
  const { code, message } = own.error;
  return { ...verdict, error: { ...verdict.error, details: { ...verdict.error.details, cause: { code, message } } } };
}

const FAILURES = {
  auth: 'ENGINE_AUTH_REQUIRED.reported',
  rate_limit: 'ENGINE_RATE_LIMITED',
  service: 'ENGINE_SERVICE_FAILED',
  request: 'ENGINE_REQUEST_REJECTED',
  limit: 'ENGINE_LIMIT_REACHED',
  turn: 'ENGINE_TURN_FAILED.reported',
} as const satisfies Record<EngineFailure['kind'], string>;

function engineFailed(facts: TurnFacts) {
  const failure = facts.evidence.failure;
  invariant(failure, 'a failure was seen');
  return failTurn(facts, runError(FAILURES[failure.kind], { reason: failure.message }));
}

function processDied(facts: TurnFacts) {
  const { exit } = facts;
  const reasonCode = exit.signal === null ? 'EXIT_NONZERO' : 'EXIT_SIGNAL';
  return failTurn(facts, explainExit(facts), 'interrupted', reasonCode);
}

function explainExit({ exit, evidence: { complaint } }: TurnFacts): RunError {
  // Earlier output does not explain a signal.
  if (exit.signal !== null) return runError('ENGINE_EXITED.signal', { signal: exit.signal });
  const code = exit.code ?? 'unknown';
  if (complaint === null) return runError('ENGINE_EXITED.code', { exit_code: code });
  const name = complaint.kind === 'auth' ? 'ENGINE_AUTH_REQUIRED.exited' : 'ENGINE_EXITED.code_reason';
  return runError(name, { exit_code: code, reason: complaint.message });
}

function needsInput(facts: TurnFacts) {
  const question = mergeQuestions(facts.evidence.questions) ?? {
    kind: 'open_text' as const,
    // The message itself was an event; here it only reminds.
    prompt: facts.evidence.lastMessage?.trim()
      ? clip(facts.evidence.lastMessage, MAX_PROMPT_CHARS)
      : '(the agent ended its turn without a message)',
    options: [],
    channel: 'conversation' as const,
  };
  return {
    event: 'turn.needs_input' as const,
    completion: 'awaiting_user_input' as const,
    reasonCode: asked(facts) ? 'QUESTION_ASKED' : 'TURN_OVER_NOT_DONE',
    question,
  };
}

function outputInvalid(facts: TurnFacts) {
  const problems = facts.output.kind === 'invalid' ? facts.output.problems : null;
  const error =
    problems === null ? runError('OUTPUT_INVALID.not_json') : runError('OUTPUT_INVALID.schema', { problem: problems });
  return failTurn(facts, error, 'completed');
}

function unknown(facts: TurnFacts) {
  const reasonCode = facts.evidence.unfinished ?? 'NO_SUCCESS_EVIDENCE';
  return failTurn(facts, runError('COMPLETION_UNKNOWN', { reason_code: reasonCode }), 'unknown', reasonCode);
}
