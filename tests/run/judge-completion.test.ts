// The completion table of the design as data: each row in both modes, then every pair of rows (the first that fits
// wins), then the whole table against an independent restatement of it.
import { phrase } from '../../src/messages/phrase.js';
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { RunErrorCode } from '../../src/contract/error-codes.js';
import type { ExecutionMode } from '../../src/run/attempt.js';
import type { TurnEvidence } from '../../src/run/evidence.js';
import { parseQuestion } from '../../src/run/interaction.js';
import { judgeCompletion, RULES, type TurnFacts, type Verdict } from '../../src/run/judge-completion.js';
import type { RunEvent } from '../../src/run/statechart.js';

const PROBLEMS = [
  phrase('cannot_be', { field: 'answer', value: 1, because: phrase('takes', { form: phrase('text') }) }),
];

const SESSION = 'session-1';
const OTHER_SESSION = 'session-2';
const MODES = ['auto', 'interactive'] as const;
const WHICH = parseQuestion({ prompt: 'Which one?', options: ['a', 'b'] }, 'tool');
const WHEN = parseQuestion({ prompt: 'When?' }, 'tool');

// A first turn that exited with code 0, has a session that can be resumed, and shows nothing else.
const SILENT: TurnFacts = {
  mode: 'interactive',
  attempt: 1,
  maxAttempt: 100,
  evidence: {
    sessionId: SESSION,
    success: false,
    failure: null,
    unfinished: null,
    questions: [],
    done: null,
    lastMessage: null,
    complaint: null,
  },
  exit: { code: 0, signal: null },
  endedByUs: null,
  resumedFrom: null,
  handleChecked: true,
  output: { kind: 'not_asked' },
};

type Patch = Partial<Omit<TurnFacts, 'evidence'>> & { readonly evidence?: Partial<TurnEvidence> };

// Later patches override earlier ones.
function factsWith(...patches: Patch[]): TurnFacts {
  const evidence: TurnEvidence = Object.assign({}, SILENT.evidence, ...patches.map((patch) => patch.evidence));
  return Object.assign({}, SILENT, ...patches, { evidence });
}

const shape = (verdict: Verdict) => ({
  event: verdict.event,
  ...(verdict.event === 'turn.failed' ? { code: verdict.error.code } : {}),
  completion: verdict.completion,
  reasonCode: verdict.reasonCode,
});
type Expected = ReturnType<typeof shape>;

const failed = (
  code: RunErrorCode,
  completion: Verdict['completion'] = 'interrupted',
  reasonCode: string = code,
): Expected => ({ event: 'turn.failed', code, completion, reasonCode });
const succeeded = (reasonCode: string): Expected => ({ event: 'turn.succeeded', completion: 'completed', reasonCode });
const waits = (reasonCode: string): Expected => ({
  event: 'turn.needs_input',
  completion: 'awaiting_user_input',
  reasonCode,
});
const canceled: Expected = { event: 'run.canceled', completion: 'interrupted', reasonCode: 'CANCELED_BY_USER' };

const cannotAsk = failed('AUTO_MODE_CANNOT_ASK', 'awaiting_user_input');
const noHandle = failed('SESSION_RESUME_FAILED', 'awaiting_user_input', 'HANDLE_MISSING');
const attemptsUsedUp = failed('INTERACTIVE_MAX_ATTEMPT_EXCEEDED', 'awaiting_user_input');

interface Row {
  readonly name: string;
  readonly when: Patch;
  readonly auto: Expected;
  readonly interactive: Expected;
}

const alike = (expected: Expected) => ({ auto: expected, interactive: expected });

// In the order of the table: the first line that fits.
const TABLE: readonly Row[] = [
  {
    name: 'a turn that we canceled is canceled',
    when: { endedByUs: 'canceled', exit: { code: null, signal: 'SIGTERM' } },
    ...alike(canceled),
  },
  {
    name: 'a turn that a shutdown cut off fails with its own code',
    when: { endedByUs: 'shutdown', exit: { code: null, signal: 'SIGTERM' } },
    ...alike(failed('ORCHESTRATOR_RESTART_INTERRUPTED')),
  },
  {
    name: 'a turn that took too long fails with its own code',
    when: { endedByUs: 'turn_timeout', exit: { code: null, signal: 'SIGTERM' } },
    ...alike(failed('TURN_TIMEOUT')),
  },
  {
    name: 'a turn that repeated itself without end fails as one of the engine',
    when: { endedByUs: 'runaway', exit: { code: null, signal: 'SIGTERM' } },
    ...alike(failed('ENGINE_TURN_FAILED', 'interrupted', 'RUNAWAY')),
  },
  {
    name: 'a turn that printed nothing for too long fails with its own code',
    when: { endedByUs: 'idle_timeout', exit: { code: null, signal: 'SIGKILL' } },
    ...alike(failed('ENGINE_IDLE_TIMEOUT')),
  },
  {
    name: 'a tool call that stayed silent for too long fails with its own code',
    when: { endedByUs: 'tool_timeout', exit: { code: null, signal: 'SIGKILL' } },
    ...alike(failed('TOOL_CALL_TIMEOUT')),
  },
  {
    name: 'a turn that we ended because it worked in another session has lost its conversation',
    when: {
      resumedFrom: SESSION,
      endedByUs: 'other_session',
      exit: { code: null, signal: 'SIGKILL' },
      evidence: { sessionId: OTHER_SESSION },
    },
    ...alike(failed('SESSION_RESUME_FAILED', 'interrupted', 'SESSION_CHANGED')),
  },
  {
    name: 'a resumed turn whose session was never confirmed has lost its conversation',
    when: { resumedFrom: SESSION, evidence: { sessionId: null } },
    ...alike(failed('SESSION_RESUME_FAILED', 'interrupted', 'SESSION_NOT_CONFIRMED')),
  },
  {
    name: 'a resumed turn that came back with another session id has lost its conversation',
    when: { resumedFrom: SESSION, evidence: { sessionId: OTHER_SESSION } },
    ...alike(failed('SESSION_RESUME_FAILED', 'interrupted', 'SESSION_CHANGED')),
  },
  {
    name: 'an engine that reports its own failure fails the turn',
    when: { evidence: { failure: { kind: 'turn', message: 'model overloaded' } } },
    ...alike(failed('ENGINE_TURN_FAILED')),
  },
  {
    name: 'an engine that reports that it is not logged in fails the turn with the code for that',
    when: { evidence: { failure: { kind: 'auth', message: 'please log in' } } },
    ...alike(failed('ENGINE_AUTH_REQUIRED')),
  },
  {
    name: 'a process that died after complaining about the login fails with the code for that',
    when: {
      exit: { code: 41, signal: null },
      evidence: { complaint: { kind: 'auth', message: 'set an auth method' } },
    },
    ...alike(failed('ENGINE_AUTH_REQUIRED', 'interrupted', 'EXIT_NONZERO')),
  },
  {
    name: 'a process that died by a signal fails the turn',
    when: { exit: { code: null, signal: 'SIGSEGV' } },
    ...alike(failed('ENGINE_EXITED', 'interrupted', 'EXIT_SIGNAL')),
  },
  {
    name: 'a process that exited with another code than 0 fails the turn',
    when: { exit: { code: 7, signal: null } },
    ...alike(failed('ENGINE_EXITED', 'interrupted', 'EXIT_NONZERO')),
  },
  {
    name: 'a question without a session id never waits',
    when: { evidence: { questions: [WHICH], sessionId: null }, handleChecked: false },
    auto: cannotAsk,
    interactive: noHandle,
  },
  {
    name: 'a question whose session id only looks checked never waits',
    when: { evidence: { questions: [WHICH], sessionId: null }, handleChecked: true },
    auto: cannotAsk,
    interactive: noHandle,
  },
  {
    name: 'a question whose session was not found never waits',
    when: { evidence: { questions: [WHICH] }, handleChecked: false },
    auto: cannotAsk,
    interactive: noHandle,
  },
  {
    name: 'a question at the last allowed attempt fails instead of waiting',
    when: { evidence: { questions: [WHICH], sessionId: SESSION }, handleChecked: true, attempt: 100 },
    auto: cannotAsk,
    interactive: attemptsUsedUp,
  },
  {
    name: 'a question waits in an interactive run and fails an auto run',
    when: { evidence: { questions: [WHICH], sessionId: SESSION }, handleChecked: true, attempt: 1 },
    auto: cannotAsk,
    interactive: waits('QUESTION_ASKED'),
  },
  {
    name: 'a turn that the person stopped at an approval is followed by their next message',
    when: {
      stopped: true,
      handleChecked: true,
      attempt: 1,
      evidence: { sessionId: SESSION, unfinished: 'TURN_INTERRUPTED', success: false, done: null },
    },
    auto: failed('COMPLETION_UNKNOWN', 'unknown', 'TURN_INTERRUPTED'),
    interactive: waits('STOPPED_BY_USER'),
  },
  {
    name: 'a successful turn whose output does not fit the schema fails',
    when: { evidence: { success: true }, output: { kind: 'invalid', problems: PROBLEMS } },
    ...alike(failed('OUTPUT_INVALID', 'completed')),
  },
  {
    name: 'a done marker does not save an output that does not fit the schema',
    when: { evidence: { done: { result: 'x' } }, output: { kind: 'invalid', problems: PROBLEMS } },
    ...alike(failed('OUTPUT_INVALID', 'completed')),
  },
  {
    name: 'a done marker ends the run, with or without the success event of the engine',
    when: { evidence: { done: { result: 42 } } },
    ...alike(succeeded('DONE_MARKER')),
  },
  {
    name: 'a successful turn with a valid output ends the run',
    when: { evidence: { success: true }, output: { kind: 'valid', value: { answer: 1 } } },
    ...alike(succeeded('OUTPUT_VALID')),
  },
  {
    name: 'a conversation that continues without a session id cannot be waited for, while an auto run is done',
    when: { evidence: { success: true, sessionId: null, lastMessage: 'Hello.' }, handleChecked: false },
    auto: succeeded('ENGINE_SUCCESS'),
    interactive: noHandle,
  },
  {
    name: 'a conversation that continues without a checked session cannot be waited for, while an auto run is done',
    when: { evidence: { success: true, lastMessage: 'Hello.' }, handleChecked: false },
    auto: succeeded('ENGINE_SUCCESS'),
    interactive: noHandle,
  },
  {
    name: 'a conversation that continues at the last allowed attempt fails, while an auto run is done',
    when: { evidence: { success: true, sessionId: SESSION, lastMessage: 'Hello.' }, handleChecked: true, attempt: 100 },
    auto: succeeded('ENGINE_SUCCESS'),
    interactive: attemptsUsedUp,
  },
  {
    name: 'success without a marker ends an auto run, while an interactive run waits for the next word',
    when: { evidence: { success: true, sessionId: SESSION, lastMessage: 'Hello.' }, handleChecked: true, attempt: 1 },
    auto: succeeded('ENGINE_SUCCESS'),
    interactive: waits('TURN_OVER_NOT_DONE'),
  },
  {
    name: 'exit code 0 without evidence is unknown, with the reason the output gives',
    when: { evidence: { unfinished: 'NO_TURN_COMPLETED', lastMessage: 'I am done!' } },
    ...alike(failed('COMPLETION_UNKNOWN', 'unknown', 'NO_TURN_COMPLETED')),
  },
  {
    name: 'exit code 0 without output is unknown, with a reason of its own',
    when: {},
    ...alike(failed('COMPLETION_UNKNOWN', 'unknown', 'NO_SUCCESS_EVIDENCE')),
  },
];

function check(expected: Expected, mode: ExecutionMode, ...patches: Patch[]): Verdict {
  const verdict = judgeCompletion(factsWith(...patches, { mode }));
  expect(shape(verdict), `${mode} ${JSON.stringify(patches)}`).toEqual(expected);
  return verdict;
}

const judge = (...patches: Patch[]) => judgeCompletion(factsWith(...patches));
const errorOf = (verdict: Verdict) => (verdict.event === 'turn.failed' ? verdict.error : undefined);
const questionOf = (verdict: Verdict) => (verdict.event === 'turn.needs_input' ? verdict.question : undefined);
const resultOf = (verdict: Verdict) => (verdict.event === 'turn.succeeded' ? verdict.result : undefined);

describe('each row of the table', () => {
  for (const row of TABLE) {
    test(row.name, () => {
      for (const mode of MODES) check(row[mode], mode, row.when);
    });
  }

  test('every rule of the code is the deciding one for some row', () => {
    const used = new Set(TABLE.flatMap((row) => MODES.map((mode) => judge(row.when, { mode }).rule)));
    expect([...used].toSorted()).toEqual(RULES.map((rule) => rule.id).toSorted());
  });
});

describe('the first row that fits decides', () => {
  test('a row does not depend on facts that only a later row reads', () => {
    let pairs = 0;
    for (const [index, row] of TABLE.entries()) {
      for (const later of TABLE.slice(index + 1)) {
        for (const mode of MODES) {
          const verdict = judge(later.when, row.when, { mode });
          expect({ ...shape(verdict), reasonCode: null }, `${mode}: "${row.name}" on top of "${later.name}"`).toEqual({
            ...row[mode],
            reasonCode: null,
          });
          pairs += 1;
        }
      }
    }
    expect(pairs).toBeGreaterThan(500);
  });

  test('the exit of a process does not affect a turn that had already ended', () => {
    for (const exit of [
      { code: 1, signal: null },
      { code: null, signal: 'SIGKILL' },
      { code: null, signal: null },
    ]) {
      for (const mode of MODES)
        check(succeeded('DONE_MARKER'), mode, { outlived: true, exit, evidence: { done: { result: 1 } } });
    }
  });

  test('a cancel beats a timeout of the engine, a lost session, a question and even a success', () => {
    const everything: Patch = {
      resumedFrom: SESSION,
      exit: { code: 1, signal: 'SIGKILL' },
      evidence: {
        sessionId: null,
        failure: { kind: 'turn', message: 'x' },
        questions: [WHICH],
        success: true,
        done: { result: 1 },
      },
    };
    for (const mode of MODES) check(canceled, mode, everything, { endedByUs: 'canceled' });
  });

  test('a timeout of ours keeps its own code when the resumed session was not confirmed either', () => {
    const lost: Patch = { resumedFrom: SESSION, evidence: { sessionId: null } };
    for (const mode of MODES) {
      check(failed('ORCHESTRATOR_RESTART_INTERRUPTED'), mode, lost, { endedByUs: 'shutdown' });
      check(failed('TURN_TIMEOUT'), mode, lost, { endedByUs: 'turn_timeout' });
      check(failed('ENGINE_IDLE_TIMEOUT'), mode, lost, { endedByUs: 'idle_timeout' });
      check(failed('ENGINE_TURN_FAILED', 'interrupted', 'RUNAWAY'), mode, lost, { endedByUs: 'runaway' });
    }
  });

  test('a resume that was not confirmed beats the failure that followed from it', () => {
    const notConfirmed = failed('SESSION_RESUME_FAILED', 'interrupted', 'SESSION_NOT_CONFIRMED');
    const lost: Patch = {
      resumedFrom: SESSION,
      evidence: { sessionId: null, failure: { kind: 'turn', message: 'no such session' } },
      exit: { code: 1, signal: null },
    };
    for (const mode of MODES) check(notConfirmed, mode, lost);
  });

  test('a resume that came back with another session id fails even if that turn succeeded', () => {
    const changed = failed('SESSION_RESUME_FAILED', 'interrupted', 'SESSION_CHANGED');
    for (const mode of MODES)
      check(changed, mode, {
        resumedFrom: SESSION,
        evidence: { sessionId: OTHER_SESSION, success: true, done: { result: 'fine' } },
      });
  });

  test('a resumed turn that failed after its session was confirmed keeps the code of its failure', () => {
    for (const mode of MODES)
      check(failed('ENGINE_EXITED', 'interrupted', 'EXIT_NONZERO'), mode, {
        resumedFrom: SESSION,
        exit: { code: 2, signal: null },
      });
  });

  test('a first turn that failed on its own keeps its own code, although it has no session id', () => {
    for (const mode of MODES) {
      check(failed('ENGINE_EXITED', 'interrupted', 'EXIT_NONZERO'), mode, {
        exit: { code: 1, signal: null },
        evidence: { sessionId: null },
        handleChecked: false,
      });
      check(failed('COMPLETION_UNKNOWN', 'unknown', 'NO_SUCCESS_EVIDENCE'), mode, {
        evidence: { sessionId: null },
        handleChecked: false,
      });
    }
  });

  test('a question counts even if the agent worked on after it and said that it was done', () => {
    const workedOn: Patch = {
      evidence: { questions: [WHICH], success: true, done: { result: 'done anyway' }, lastMessage: 'I went on.' },
    };
    check(waits('QUESTION_ASKED'), 'interactive', workedOn);
    check(cannotAsk, 'auto', workedOn);
  });

  test('a turn that is done succeeds without a session id', () => {
    for (const mode of MODES)
      check(succeeded('DONE_MARKER'), mode, {
        evidence: { sessionId: null, done: { result: null } },
        handleChecked: false,
      });
  });

  test('a complaint explains a process that died but is no evidence against one that succeeded', () => {
    const complaint: Patch = { evidence: { complaint: { kind: 'turn', message: 'quota nearly used up' } } };
    expect(errorOf(judge(complaint, { exit: { code: 1, signal: null } }))?.message).toContain('quota nearly used up');
    check(succeeded('ENGINE_SUCCESS'), 'auto', complaint, {
      evidence: { complaint: { kind: 'auth', message: 'log in again soon' }, success: true },
    });
  });

  test('the attempt before the last may still wait', () => {
    check(waits('QUESTION_ASKED'), 'interactive', { evidence: { questions: [WHICH] }, attempt: 99 });
    check(attemptsUsedUp, 'interactive', { evidence: { questions: [WHICH] }, attempt: 1, maxAttempt: 1 });
    check(attemptsUsedUp, 'interactive', { evidence: { questions: [WHICH] }, attempt: 5, maxAttempt: 3 });
  });
});

describe('contents of a verdict', () => {
  test('a question that a failed turn asked is kept as unanswered', () => {
    const failures: Patch[] = [
      { endedByUs: 'shutdown' },
      { endedByUs: 'turn_timeout' },
      { endedByUs: 'idle_timeout' },
      { endedByUs: 'runaway' },
      { endedByUs: 'other_session' },
      { resumedFrom: OTHER_SESSION },
      { evidence: { failure: { kind: 'turn', message: 'x' } } },
      { exit: { code: 1, signal: null } },
      { exit: { code: null, signal: 'SIGKILL' } },
      { handleChecked: false },
      { attempt: 100 },
      { mode: 'auto' },
    ];
    for (const failure of failures) {
      const error = errorOf(
        judge({ evidence: { questions: [WHICH] } }, failure, { evidence: { ...failure.evidence, questions: [WHICH] } }),
      );
      expect(error?.details, JSON.stringify(failure)).toEqual({
        unanswered: {
          kind: 'choose_one',
          prompt: 'Which one?',
          options: [
            { label: 'a', value: 'a' },
            { label: 'b', value: 'b' },
          ],
        },
      });
    }
  });

  test('several unanswered questions are kept as one with a field for each', () => {
    const error = errorOf(judge({ evidence: { questions: [WHICH, WHEN] }, exit: { code: 1, signal: null } }));
    expect(error?.details).toMatchObject({
      unanswered: { kind: 'fill_fields', fields: [{ prompt: 'Which one?' }, { prompt: 'When?' }] },
    });
  });

  test('a failed turn that asked nothing has no unanswered question', () => {
    expect(errorOf(judge({ exit: { code: 1, signal: null } }))).not.toHaveProperty('details');
  });

  test('the question of a waiting turn is the one the agent asked', () => {
    expect(questionOf(judge({ evidence: { questions: [WHICH] } }))).toEqual(WHICH);
    expect(questionOf(judge({ evidence: { questions: [WHICH, WHEN] } }))).toMatchObject({
      kind: 'fill_fields',
      fields: [{ prompt: 'Which one?' }, { prompt: 'When?' }],
    });
  });

  test('a continuing conversation asks for open text with the last message as prompt', () => {
    expect(questionOf(judge({ evidence: { success: true, lastMessage: 'Hello.\nWhat next?' } }))).toEqual({
      kind: 'open_text',
      prompt: 'Hello.\nWhat next?',
      options: [],
      channel: 'conversation',
    });
  });

  test('a continuing conversation without a message still has a prompt', () => {
    for (const lastMessage of [null, '', ' \n'])
      expect(questionOf(judge({ evidence: { success: true, lastMessage } }))?.prompt.trim()).not.toBe('');
  });

  test('the result is the valid output, else that of the done marker, else the last message', () => {
    const valid: Patch = { output: { kind: 'valid', value: { answer: 1 } } };
    expect(resultOf(judge(valid, { evidence: { done: { result: 'marker' }, lastMessage: 'message' } }))).toEqual({
      answer: 1,
    });
    expect(resultOf(judge(valid, { evidence: { success: true, lastMessage: 'message' } }))).toEqual({ answer: 1 });
    expect(resultOf(judge({ evidence: { done: { result: 'marker' }, lastMessage: 'message' } }))).toBe('marker');
    expect(resultOf(judge({ mode: 'auto', evidence: { success: true, lastMessage: 'message' } }))).toBe('message');
    expect(resultOf(judge({ mode: 'auto', evidence: { success: true, lastMessage: null } }))).toBeUndefined();
  });

  test('the message of a failure names its cause', () => {
    expect(errorOf(judge({ exit: { code: 7, signal: null } }))?.message).toContain('code 7');
    expect(errorOf(judge({ exit: { code: null, signal: 'SIGSEGV' } }))?.message).toContain('SIGSEGV');
    expect(errorOf(judge({ evidence: { failure: { kind: 'turn', message: 'model overloaded' } } }))?.message).toBe(
      'model overloaded',
    );
    expect(errorOf(judge({ resumedFrom: OTHER_SESSION }))?.message).toMatch(/session-2.*session-1/);
    expect(
      errorOf(judge({ evidence: { success: true }, output: { kind: 'invalid', problems: PROBLEMS } }))?.message,
    ).toContain('answer cannot be 1: it takes a text.');
  });
});

// --- the table once more, written as one chain from the design, and compared over every combination of facts ---

const fails = (code: RunErrorCode) => ({ event: 'turn.failed' as const, code });

function restated(facts: TurnFacts): { event: RunEvent; code?: RunErrorCode } {
  const { evidence, exit } = facts;
  const waitsIfPossible = () => {
    if (!evidence.sessionId || !facts.handleChecked) return fails('SESSION_RESUME_FAILED');
    return facts.attempt < facts.maxAttempt
      ? { event: 'turn.needs_input' as const }
      : fails('INTERACTIVE_MAX_ATTEMPT_EXCEEDED');
  };
  if (facts.endedByUs === 'canceled') return { event: 'run.canceled' };
  if (facts.endedByUs === 'shutdown') return fails('ORCHESTRATOR_RESTART_INTERRUPTED');
  if (facts.endedByUs === 'turn_timeout') return fails('TURN_TIMEOUT');
  if (facts.endedByUs === 'idle_timeout') return fails('ENGINE_IDLE_TIMEOUT');
  if (facts.endedByUs === 'tool_timeout') return fails('TOOL_CALL_TIMEOUT');
  if (facts.endedByUs === 'runaway') return fails('ENGINE_TURN_FAILED');
  if (facts.endedByUs === 'other_session') return fails('SESSION_RESUME_FAILED');
  if (facts.resumedFrom && facts.resumedFrom !== evidence.sessionId) return fails('SESSION_RESUME_FAILED');
  if (evidence.failure) return fails(evidence.failure.kind === 'auth' ? 'ENGINE_AUTH_REQUIRED' : 'ENGINE_TURN_FAILED');
  if (!facts.outlived && (exit.signal || exit.code !== 0)) return fails('ENGINE_EXITED');
  if (evidence.questions.length > 0) return facts.mode === 'auto' ? fails('AUTO_MODE_CANNOT_ASK') : waitsIfPossible();
  if (facts.stopped && facts.mode === 'interactive') return waitsIfPossible();
  if (!evidence.success && !evidence.done) return fails('COMPLETION_UNKNOWN');
  if (facts.output.kind === 'invalid') return fails('OUTPUT_INVALID');
  if (facts.output.kind === 'valid' || evidence.done || facts.mode === 'auto') return { event: 'turn.succeeded' };
  return waitsIfPossible();
}

const DIMENSIONS: readonly (readonly Patch[])[] = [
  MODES.map((mode) => ({ mode })),
  (
    [null, 'canceled', 'shutdown', 'turn_timeout', 'idle_timeout', 'tool_timeout', 'runaway', 'other_session'] as const
  ).map((endedByUs) => ({ endedByUs })),
  [null, SESSION].map((resumedFrom) => ({ resumedFrom })),
  [null, SESSION, OTHER_SESSION].map((sessionId) => ({ evidence: { sessionId } })),
  [true, false].map((handleChecked) => ({ handleChecked })),
  [null, { kind: 'auth', message: 'x' } as const, { kind: 'turn', message: 'x' } as const].map((failure) => ({
    evidence: { failure },
  })),
  [
    { code: 0, signal: null },
    { code: 1, signal: null },
    { code: null, signal: 'SIGKILL' },
  ].map((exit) => ({ exit })),
  [[], [WHICH]].map((questions) => ({ evidence: { questions } })),
  [null, { result: 1 }].map((done) => ({ evidence: { done } })),
  [true, false].map((success) => ({ evidence: { success } })),
  [
    { kind: 'not_asked' } as const,
    { kind: 'valid', value: 1 } as const,
    { kind: 'invalid', problems: PROBLEMS } as const,
  ].map((output) => ({ output })),
  [1, 100].map((attempt) => ({ attempt })),
  [{}, { outlived: true }, { outlived: true, stopped: true }],
];

function* combinations(facts: TurnFacts, dimensions: readonly (readonly Patch[])[]): Generator<TurnFacts> {
  const [first, ...rest] = dimensions;
  if (!first) {
    yield facts;
    return;
  }
  for (const patch of first)
    yield* combinations({ ...facts, ...patch, evidence: { ...facts.evidence, ...patch.evidence } }, rest);
}

test('every combination of facts gives the event and the code that the table says', () => {
  const disagreements: object[] = [];
  let count = 0;
  for (const facts of combinations(SILENT, DIMENSIONS)) {
    count += 1;
    const verdict = judgeCompletion(facts);
    const expected = restated(facts);
    if ((verdict.event !== expected.event || errorOf(verdict)?.code !== expected.code) && disagreements.length < 3)
      disagreements.push({ facts, expected, got: shape(verdict) });
  }
  expect(disagreements).toEqual([]);
  expect(count).toBe(DIMENSIONS.reduce((product, choices) => product * choices.length, 1));
});

// --- promises over any facts at all ---

const someText = fc.oneof(fc.constant(''), fc.string());
const words = fc.record({ kind: fc.constantFrom('auth' as const, 'turn' as const), message: someText });
// Facts that end the judgement early are rare, so that the later rows are reached as well.
const rarely = <T>(value: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 4, arbitrary: fc.constant(null) }, { weight: 1, arbitrary: value });
const anyFacts: fc.Arbitrary<TurnFacts> = fc.record({
  mode: fc.constantFrom(...MODES),
  attempt: fc.integer({ min: 1, max: 4 }),
  maxAttempt: fc.integer({ min: 1, max: 4 }),
  evidence: fc.record({
    sessionId: fc.option(fc.constantFrom(SESSION, OTHER_SESSION)),
    success: fc.boolean(),
    failure: rarely(words),
    unfinished: fc.option(fc.constantFrom('NO_TURN_COMPLETED', 'STEP_NOT_STOPPED')),
    questions: fc.oneof(
      fc.constant([]),
      fc.array(
        fc.jsonValue().map((value) => parseQuestion(value as never, 'envelope')),
        { maxLength: 3 },
      ),
    ),
    done: rarely(fc.record({ result: fc.jsonValue().map((value) => value as never) })),
    lastMessage: fc.option(someText),
    complaint: fc.option(words),
  }),
  exit: fc.oneof(
    { weight: 3, arbitrary: fc.constant({ code: 0, signal: null }) },
    {
      weight: 1,
      arbitrary: fc.record({
        code: fc.option(fc.integer({ min: 0, max: 255 })),
        signal: fc.option(fc.constantFrom('SIGTERM', 'SIGKILL')),
      }),
    },
  ),
  endedByUs: rarely(
    fc.constantFrom(
      'canceled' as const,
      'shutdown' as const,
      'turn_timeout' as const,
      'idle_timeout' as const,
      'tool_timeout' as const,
      'runaway' as const,
      'other_session' as const,
    ),
  ),
  outlived: fc.boolean(),
  stopped: fc.boolean(),
  resumedFrom: rarely(fc.constantFrom(SESSION, OTHER_SESSION)),
  handleChecked: fc.boolean(),
  output: fc.oneof(
    fc.constant({ kind: 'not_asked' as const }),
    fc.constant({ kind: 'valid' as const, value: 1 }),
    fc.constant({ kind: 'invalid' as const, problems: PROBLEMS }),
  ),
});

const forAnyFacts = (promise: (facts: TurnFacts, verdict: Verdict) => unknown) =>
  fc.assert(
    fc.property(anyFacts, (facts) => void promise(facts, judgeCompletion(facts))),
    { seed: 4, numRuns: 1000 },
  );

describe('whatever the facts', () => {
  test('random facts reach every rule of the table', () => {
    const rules = new Set<string>();
    forAnyFacts((_facts, verdict) => rules.add(verdict.rule));
    expect([...rules].toSorted()).toEqual(RULES.map((rule) => rule.id).toSorted());
  });

  test('a turn never succeeds without the success of its engine or a done marker: exit code 0 is not enough', () => {
    forAnyFacts((facts, verdict) => {
      if (verdict.event !== 'turn.succeeded') return;
      expect(facts.evidence.success || facts.evidence.done !== null).toBe(true);
      if (!facts.outlived) expect(facts.exit).toEqual({ code: 0, signal: null });
      expect(facts).toMatchObject({ endedByUs: null, evidence: { failure: null, questions: [] } });
      expect(facts.output.kind).not.toBe('invalid');
    });
  });

  test('a turn only waits in an interactive run, with a checked session and attempts left', () => {
    forAnyFacts((facts, verdict) => {
      if (verdict.event !== 'turn.needs_input') return;
      expect(facts).toMatchObject({ mode: 'interactive', handleChecked: true, endedByUs: null });
      expect(facts.evidence.sessionId).not.toBeNull();
      expect(facts.resumedFrom ?? facts.evidence.sessionId).toBe(facts.evidence.sessionId);
      expect(facts.attempt).toBeLessThan(facts.maxAttempt);
      expect(verdict.completion).toBe('awaiting_user_input');
    });
  });

  test('a turn is canceled exactly when we canceled it', () => {
    forAnyFacts((facts, verdict) => expect(verdict.event === 'run.canceled').toBe(facts.endedByUs === 'canceled'));
  });

  test('a failed turn has a run error code of the contract and keeps every question it asked', () => {
    const errors = JSON.parse(readFileSync(new URL('../../contract/errors.json', import.meta.url), 'utf8')) as Record<
      string,
      { kind: string }
    >;
    forAnyFacts((facts, verdict) => {
      if (verdict.event !== 'turn.failed') return;
      expect(errors[verdict.error.code]?.kind).toBe('run');
      const unanswered = JSON.stringify(verdict.error.details?.unanswered ?? {});
      for (const question of facts.evidence.questions) expect(unanswered).toContain(JSON.stringify(question.prompt));
    });
  });

  test('a turn is unknown exactly when it fails with that code, and it has a reason code', () => {
    forAnyFacts((_facts, verdict) => {
      expect(verdict.completion === 'unknown').toBe(errorOf(verdict)?.code === 'COMPLETION_UNKNOWN');
      expect(verdict.reasonCode).toMatch(/^[A-Z][A-Z_]+$/);
    });
  });
});
