// How a turn ended: one table, read from the top; the first line that fits decides.
// Exit code 0 is never success by itself: every one of the CLIs exits 0 after some failures.
import type { RunErrorCode, StickyErrorCode } from '../contract/error-codes.js';
import type { RunEvent } from '../contract/chart-names.js';
import { invariant } from '../kernel/invariant.js';
import type { Json, JsonObject } from '../kernel/json.js';
import { clip } from '../kernel/redact.js';
import type { ExecutionMode } from './attempt.js';
import type { TurnEvidence } from './evidence.js';
import { mergeQuestions, type Question } from './interaction.js';
import { explainLimit, type TurnLimits } from './turn-limits.js';

const MAX_PROMPT_CHARS = 8000;

export interface Exit {
  readonly code: number | null;
  readonly signal: string | null;
}

export type OutputCheck =
  | { readonly kind: 'not_asked' }
  | { readonly kind: 'valid'; readonly value: Json }
  | { readonly kind: 'invalid'; readonly problems: string };

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
  // The person who was asked for leave has stopped the turn.
  readonly stopped?: boolean;
  // The session id this turn was to continue; null for a first turn.
  readonly resumedFrom: string | null;
  // The session was looked for and is there; only then may a run wait for an answer.
  readonly handleChecked: boolean;
  readonly output: OutputCheck;
  // The limits of the turn, for the message of one that was reached.
  readonly limits?: TurnLimits;
}

export interface RunError {
  readonly code: RunErrorCode | StickyErrorCode;
  readonly message: string;
  readonly details?: JsonObject;
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
// A conversation whose turn ended well without a word about being done goes on: reply or finish.
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
    verdict: (f) =>
      fail(
        f,
        'ORCHESTRATOR_RESTART_INTERRUPTED',
        'Parley was stopped while this turn ran. Repeat it with parley retry; the setting ' +
          'recovery.running="retry" repeats interrupted runs once by itself.',
      ),
  },
  {
    id: 'turn timeout',
    when: (f) => f.endedByUs === 'turn_timeout',
    verdict: (f) => fail(f, 'TURN_TIMEOUT', explainLimit('turn_timeout_sec', f.limits)),
  },
  {
    id: 'idle timeout',
    when: (f) => f.endedByUs === 'idle_timeout',
    verdict: (f) => fail(f, 'ENGINE_IDLE_TIMEOUT', explainLimit('idle_timeout_sec', f.limits)),
  },
  {
    id: 'tool timeout',
    when: (f) => f.endedByUs === 'tool_timeout',
    verdict: (f) => fail(f, 'TOOL_CALL_TIMEOUT', explainLimit('tool_timeout_sec', f.limits)),
  },
  {
    id: 'runaway',
    when: (f) => f.endedByUs === 'runaway',
    verdict: (f) =>
      fail(
        f,
        'ENGINE_TURN_FAILED',
        'The engine repeated itself without getting anywhere and was ended.',
        'interrupted',
        'RUNAWAY',
      ),
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
    verdict: (f) =>
      fail(
        f,
        'AUTO_MODE_CANNOT_ASK',
        'The agent asked a question, but the run is in auto mode.',
        'awaiting_user_input',
      ),
  },
  {
    id: 'would wait, no session',
    when: (f) => wantsPerson(f) && !canResume(f),
    verdict: (f) =>
      fail(
        f,
        'SESSION_RESUME_FAILED',
        'The agent needs a person, but its session could not be found, so an answer could never reach it.',
        'awaiting_user_input',
        'HANDLE_MISSING',
      ),
  },
  {
    id: 'would wait, attempts used up',
    when: (f) => wantsPerson(f) && f.attempt >= f.maxAttempt,
    verdict: (f) =>
      fail(
        f,
        'INTERACTIVE_MAX_ATTEMPT_EXCEEDED',
        `The agent needs a person again after ${f.attempt} turns; max_attempt is ${f.maxAttempt}.`,
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

function fail(
  facts: TurnFacts,
  code: RunErrorCode,
  message: string,
  completion: Verdict['completion'] = 'interrupted',
  reasonCode: string = code,
) {
  return {
    event: 'turn.failed' as const,
    completion,
    reasonCode,
    error: withUnanswered({ code, message }, facts.evidence.questions),
  };
}

// What was asked and can no longer be answered is told with the failure.
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

// Why a session could not be continued, with what would have been the error of a first turn as its cause.
export function asResumeFailure(cause: RunError): RunError {
  if (cause.code === 'SESSION_RESUME_FAILED') return cause;
  const { details, ...rest } = cause;
  return {
    code: 'SESSION_RESUME_FAILED',
    message: `The session cannot be continued: ${cause.message}`,
    details: { ...details, cause: { ...rest } },
  };
}

function resumeFailed(facts: TurnFacts) {
  const { sessionId: got, complaint } = facts.evidence;
  const reason = complaint ? `: ${complaint.message}` : '.';
  return got === null
    ? withCause(
        facts,
        fail(
          facts,
          'SESSION_RESUME_FAILED',
          `The engine never confirmed that it continues session ${facts.resumedFrom}${reason}`,
          'interrupted',
          'SESSION_NOT_CONFIRMED',
        ),
      )
    : fail(
        facts,
        'SESSION_RESUME_FAILED',
        `The engine was to continue session ${facts.resumedFrom} but answered with ${got}.`,
        'interrupted',
        'SESSION_CHANGED',
      );
}

// What the turn would have failed with, had it been a first one.
function withCause(facts: TurnFacts, verdict: ReturnType<typeof fail>): ReturnType<typeof fail> {
  const own = facts.evidence.failure !== null ? engineFailed(facts) : died(facts) ? processDied(facts) : null;
  if (own === null) return verdict;
  const { code, message } = own.error;
  return { ...verdict, error: { ...verdict.error, details: { ...verdict.error.details, cause: { code, message } } } };
}

function engineFailed(facts: TurnFacts) {
  const failure = facts.evidence.failure;
  invariant(failure, 'a failure was seen');
  return fail(facts, failure.kind === 'auth' ? 'ENGINE_AUTH_REQUIRED' : 'ENGINE_TURN_FAILED', failure.message);
}

function processDied(facts: TurnFacts) {
  const { exit } = facts;
  // What was printed on the way does not explain a signal.
  const complaint = exit.signal === null ? facts.evidence.complaint : null;
  const how = exit.signal === null ? `with code ${exit.code}` : `by signal ${exit.signal}`;
  const message = `The engine's process ended ${how}${complaint ? `: ${complaint.message}` : '.'}`;
  return fail(
    facts,
    complaint?.kind === 'auth' ? 'ENGINE_AUTH_REQUIRED' : 'ENGINE_EXITED',
    message,
    'interrupted',
    exit.signal === null ? 'EXIT_NONZERO' : 'EXIT_SIGNAL',
  );
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
  const problems = facts.output.kind === 'invalid' ? facts.output.problems : '';
  return fail(facts, 'OUTPUT_INVALID', `The result does not fit the output schema: ${problems}`, 'completed');
}

function unknown(facts: TurnFacts) {
  const reasonCode = facts.evidence.unfinished ?? 'NO_SUCCESS_EVIDENCE';
  return fail(
    facts,
    'COMPLETION_UNKNOWN',
    `The process exited with code 0, but nothing in its output shows success (${reasonCode}).`,
    'unknown',
    reasonCode,
  );
}
