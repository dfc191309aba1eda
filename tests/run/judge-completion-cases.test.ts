// The texts of a judgement: the cause of a failed resume, errors of the engine, and the length of a prompt.
import { phrase } from '../../src/messages/phrase.js';
import { describe, expect, test } from 'vitest';
import { asResumeFailure, judgeCompletion, type TurnFacts } from '../../src/run/judge-completion.js';
import type { RunError } from '../../src/run/run-error.js';

type Changes = Partial<Omit<TurnFacts, 'evidence'>> & { readonly evidence?: Partial<TurnFacts['evidence']> };

function judge({ evidence, ...facts }: Changes): ReturnType<typeof judgeCompletion> {
  return judgeCompletion({
    mode: 'interactive',
    attempt: 1,
    maxAttempt: 100,
    evidence: {
      sessionId: 's-1',
      success: false,
      failure: null,
      unfinished: null,
      questions: [],
      done: null,
      lastMessage: null,
      complaint: null,
      ...evidence,
    },
    exit: { code: 0, signal: null },
    endedByUs: null,
    resumedFrom: null,
    handleChecked: true,
    output: { kind: 'not_asked' },
    ...facts,
  });
}

function errorOf(changes: Changes): RunError {
  const verdict = judge(changes);
  if (verdict.event !== 'turn.failed') throw new Error(`the turn ended with ${verdict.event}`);
  return verdict.error;
}

const COMPLAINT = { kind: 'turn', message: 'no such session' } as const;

test('a turn that Parley stopped fails with the way to repeat it', () => {
  expect(errorOf({ endedByUs: 'shutdown' }).message).toMatch(/parley retry.*recovery\.running="retry"/);
});

test('a long last message is shortened to 8000 characters in the prompt', () => {
  const verdict = judge({ evidence: { success: true, lastMessage: 'x'.repeat(9000) } });
  const prompt = verdict.event === 'turn.needs_input' ? verdict.question.prompt : '';
  expect(prompt.replace('…', '')).toHaveLength(8000);
});

describe('a resume that was not confirmed', () => {
  const unconfirmed = { resumedFrom: 's-1' } as const;

  test('has no cause if the engine exited without an error', () => {
    const error = errorOf({ ...unconfirmed, evidence: { sessionId: null } });
    expect(error.message).toBe('The engine never confirmed that it continues session s-1.');
    expect(error).not.toHaveProperty('details');
  });

  test('quotes the complaint of the engine', () => {
    const error = errorOf({ ...unconfirmed, evidence: { sessionId: null, complaint: COMPLAINT } });
    expect(error.message).toBe('The engine never confirmed that it continues session s-1: no such session');
  });

  test('has the failure of the engine as its cause, else the exit of the process', () => {
    const exit = { code: 3, signal: null };
    const failure = { kind: 'auth', message: 'log in first' } as const;
    expect(errorOf({ ...unconfirmed, exit, evidence: { sessionId: null, failure } }).details).toEqual({
      cause: { code: 'ENGINE_AUTH_REQUIRED', message: 'log in first' },
    });
    expect(errorOf({ ...unconfirmed, exit, evidence: { sessionId: null } }).details).toEqual({
      cause: { code: 'ENGINE_EXITED', message: "The engine's process ended with code 3." },
    });
  });
});

test('a complaint explains an exit code, but not a signal', () => {
  const evidence = { complaint: { kind: 'auth', message: 'log in first' } } as const;
  expect(errorOf({ exit: { code: 1, signal: null }, evidence })).toEqual({
    code: 'ENGINE_AUTH_REQUIRED',
    message: "The engine's process ended with code 1: log in first",
    values: { exit_code: 1, reason: 'log in first' },
    hint: expect.stringContaining('Log in') as string,
  });
  expect(errorOf({ exit: { code: 1, signal: null }, evidence: { complaint: COMPLAINT } })).toEqual({
    code: 'ENGINE_EXITED',
    message: "The engine's process ended with code 1: no such session",
    values: { exit_code: 1, reason: 'no such session' },
  });
  expect(errorOf({ exit: { code: null, signal: 'SIGKILL' }, evidence })).toEqual({
    code: 'ENGINE_EXITED',
    message: "The engine's process was ended by signal SIGKILL.",
    values: { signal: 'SIGKILL' },
  });
});

test('a result that is not JSON fails differently from one that does not fit', () => {
  const evidence = { success: true } as const;
  const [unreadable, unfit] = [null, [phrase('missing', { name: 'a' })]].map((problems) =>
    errorOf({ mode: 'auto', evidence, output: { kind: 'invalid', problems } }),
  );
  expect(unreadable?.message).toContain('not JSON');
  expect(unfit?.message).toContain('a is missing');
});

test('a failed start of a resumed turn becomes a failed resume, unless it is one', () => {
  const resume = { code: 'SESSION_RESUME_FAILED', message: 'The session is missing.' } as const;
  expect(asResumeFailure(resume)).toBe(resume);
  const cause = { code: 'ENGINE_NOT_FOUND', message: 'codex not found' } as const;
  expect(asResumeFailure({ ...cause, details: { hint: 1 } })).toEqual({
    code: 'SESSION_RESUME_FAILED',
    message: 'The session cannot be continued. codex not found',
    values: { reason: 'codex not found' },
    details: { hint: 1, cause },
  });
});
