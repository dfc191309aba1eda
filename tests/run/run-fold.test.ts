// The state of a run, folded from its events: what each event changes, and that nothing else changes anything.
import { describe, expect, test } from 'vitest';
import { foldRun, isFolded, RUN_FOLD_VERSION, startFold, waitRules, type FoldedRun } from '../../src/run/run-fold.js';
import { RASP_TYPES, type RaspData, type RaspType } from '../../src/rasp/event.js';

const TS = '2026-11-18T10:00:00.000Z';
const AT = Date.parse(TS);
const later = (ms: number): string => new Date(AT + ms).toISOString();
const ANN = { kind: 'user', name: 'ann' } as const;

type Step = { [T in RaspType]: readonly [T, RaspData[T], number?] }[RaspType];

function fold(...steps: readonly Step[]): FoldedRun {
  return steps.reduce(
    (run, [type, data, attempt = 1]) => foldRun(run, { type, data, ts: TS, attempt_number: attempt }),
    startFold('/home/run'),
  );
}

const CREATED: Step = [
  'lifecycle.run.created',
  {
    engine: 'codex',
    execution_mode: 'interactive',
    prompt: 'Do it.',
    cwd: '/work',
    runtime_options: { session_timeout_sec: 60, interactive_require_user_reply: false },
  },
];
const changed = (
  from: RaspData['lifecycle.state.changed']['from'],
  to: RaspData['lifecycle.state.changed']['to'],
  rest: Partial<RaspData['lifecycle.state.changed']> = {},
): Step => ['lifecycle.state.changed', { from, to, trigger: 'turn.started', updated_at: later(5000), ...rest }];
const ASKED: Step = [
  'interaction.requested',
  { interaction_id: 'int_1', kind: 'open_text', prompt: 'Which?', options: [], asked_at: TS, default: undefined },
];
const REPLIED: Step = [
  'interaction.reply.accepted',
  { interaction_id: 'int_1', resolution_mode: 'user_reply', accepted_at: later(3000), response: 'A', actor: ANN },
];
const WAITING = [CREATED, changed('queued', 'running'), ASKED, changed('running', 'waiting_user')] as const;

test('a new run is queued in its first turn, with the rules of its request', () => {
  expect(fold(CREATED)).toEqual({
    request: { engine: 'codex', cwd: '/work', home: '/home/run', session_timeout_sec: 60, decides: true },
    status: 'queued',
    transitions: 0,
    attempt_number: 1,
    error: null,
    result: null,
    cancel_requested: null,
    waited_ms: 0,
    question: null,
    session: null,
    turn: null,
  });
});

test('before its first event a run has no engine, no folder and no time to wait', () => {
  const request = { engine: '', cwd: '', home: '/home/run', session_timeout_sec: 0, decides: false };
  expect(startFold('/home/run').request).toEqual(request);
});

// Stored runs have this number: another one would change how they are checked.
test('the version of the fold is 1', () => {
  expect(RUN_FOLD_VERSION).toBe(1);
});

test('a run that continues another starts with the session of that run', () => {
  const session = { session_id: 's-1', handle_type: 'session_id', created_at_attempt: 3 } as const;
  const [type, data] = CREATED as ['lifecycle.run.created', RaspData['lifecycle.run.created']];
  expect(fold([type, { ...data, session }]).session).toEqual({
    engine: 'codex',
    handle_type: 'session_id',
    handle_value: 's-1',
    cwd: '/work',
    home: '/home/run',
    created_at_attempt: 3,
  });
});

test('a question waits until it is answered: by whom, when, and how long it took', () => {
  const waiting = fold(...WAITING);
  expect(waiting).toMatchObject({ status: 'waiting_user', transitions: 2, attempt_number: 1, waited_ms: 0 });
  expect(waiting.question).toEqual({
    interaction_id: 'int_1',
    attempt_number: 1,
    question: { kind: 'open_text', prompt: 'Which?', options: [] },
    state: 'pending',
    asked_at: AT,
    due_at: AT + 60_000,
    decides: true,
    resolution: null,
  });
  const answered = fold(...WAITING, REPLIED, changed('waiting_user', 'queued'));
  expect(answered).toMatchObject({ status: 'queued', attempt_number: 2, waited_ms: 3000 });
  expect(answered.question).toMatchObject({
    state: 'answered',
    resolution: { at: AT + 3000, response: 'A', actor: ANN, idempotency_key: null, finish: false },
  });
});

test('a second answer to the same question changes neither the answer nor the waited time', () => {
  const [type, data] = REPLIED as ['interaction.reply.accepted', RaspData['interaction.reply.accepted']];
  const run = fold(...WAITING, REPLIED, [type, { ...data, response: 'B', accepted_at: later(9000) }]);
  expect(run.question?.resolution?.response).toBe('A');
  expect(run.waited_ms).toBe(3000);
});

test('an answer to another question changes no question', () => {
  const [type, data] = REPLIED as ['interaction.reply.accepted', RaspData['interaction.reply.accepted']];
  expect(fold(...WAITING, [type, { ...data, interaction_id: 'int_9' }]).question?.state).toBe('pending');
});

test('a clock that was set back takes nothing from the waited time', () => {
  const [type, data] = REPLIED as ['interaction.reply.accepted', RaspData['interaction.reply.accepted']];
  expect(fold(...WAITING, [type, { ...data, accepted_at: later(-4000) }]).waited_ms).toBe(0);
});

test('a question waits from the time at which it was asked; old runs have only the time of the event', () => {
  const [type, data] = ASKED as ['interaction.requested', RaspData['interaction.requested']];
  const { asked_at: _at, ...old } = data;
  expect(fold(CREATED, [type, { ...data, asked_at: later(-500) }]).question).toMatchObject({
    asked_at: AT - 500,
    due_at: AT + 59_500,
  });
  expect(fold(CREATED, [type, old as typeof data]).question?.asked_at).toBe(AT);
});

const decided = (policy: 'finish' | 'use_default'): Step => [
  'interaction.auto_decide.timeout',
  {
    interaction_id: 'int_1',
    resolution_mode: 'auto_decide_timeout',
    policy,
    decided_at: later(60_000),
    response: 'x',
  },
];

test('a question whose time expired is decided by the policy', () => {
  expect(fold(...WAITING, decided('use_default'))).toMatchObject({
    attempt_number: 2,
    waited_ms: 60_000,
    question: { state: 'auto_decided', resolution: { response: 'x', actor: null, finish: false } },
  });
  expect(fold(...WAITING, decided('finish')).question?.resolution?.finish).toBe(true);
});

describe('the end of a run', () => {
  test('that waits resolves its question: as canceled with who did it, else as abandoned', () => {
    expect(fold(...WAITING, changed('waiting_user', 'canceled', { actor: ANN }))).toMatchObject({
      waited_ms: 5000,
      question: { state: 'canceled', resolution: { at: AT + 5000, response: null, actor: ANN, finish: false } },
    });
    expect(fold(...WAITING, changed('waiting_user', 'failed', { actor: ANN }))).toMatchObject({
      question: { state: 'abandoned', resolution: { actor: null } },
    });
  });

  test('leaves an answered question as it is', () => {
    const run = fold(...WAITING, REPLIED, changed('waiting_user', 'queued'), changed('queued', 'canceled'));
    expect(run.question?.state).toBe('answered');
    expect(run.waited_ms).toBe(3000);
  });

  test('keeps its error and its result', () => {
    const error = { code: 'ENGINE_EXITED', message: 'it died' } as const;
    expect(fold(CREATED, changed('running', 'failed', { error }))).toMatchObject({ status: 'failed', error });
    expect(fold(CREATED, changed('running', 'succeeded', { result: null })).result).toBeNull();
    expect(fold(CREATED, changed('queued', 'running')).result).toBeNull();
    expect(fold(CREATED, changed('running', 'succeeded', { result: [1] }))).toMatchObject({ result: [1], error: null });
  });
});

test('a change to the same state counts as a transition', () => {
  const run = fold(...WAITING, changed('waiting_user', 'waiting_user'));
  expect(run).toMatchObject({ status: 'waiting_user', transitions: 3, question: { state: 'pending' } });
});

test('a session, a cancel request and the counts of a turn are taken from their events', () => {
  const counts = {
    parser: { profile: 'codex_ndjson', units: 2, parsed: 1, fallbacks: 1, hit_rate: 0.5, warnings: {} },
    completion: { result: 'completed', reason_code: 'DONE' },
  } as const;
  const run = fold(
    CREATED,
    [
      'lifecycle.session.confirmed',
      { session: { session_id: 's-2', handle_type: 'process', created_at_attempt: 2 } },
      2,
    ],
    ['lifecycle.cancel.requested', { requested_at: later(7), actor: ANN }],
    [
      'lifecycle.turn.ended',
      {
        ...counts,
        exit: { code: 0, signal: null },
        streams: { stdout: { bytes: 0, sha256: '' }, stderr: { bytes: 0, sha256: '' } },
      },
      2,
    ],
  );
  expect(run.session).toMatchObject({ handle_value: 's-2', handle_type: 'process', created_at_attempt: 2 });
  expect(run.cancel_requested).toEqual({ at: AT + 7, actor: ANN });
  expect(run.turn).toEqual({ ...counts, attempt_number: 2 });
});

test('events that change no row leave the very same object', () => {
  const run = fold(...WAITING);
  const folded = RASP_TYPES.filter(isFolded);
  expect(folded).toEqual([
    'lifecycle.run.created',
    'lifecycle.state.changed',
    'lifecycle.session.confirmed',
    'lifecycle.cancel.requested',
    'lifecycle.turn.ended',
    'interaction.requested',
    'interaction.reply.accepted',
    'interaction.auto_decide.timeout',
  ]);
  for (const type of ['toString', 'constructor', 'a.later.version', ...RASP_TYPES.filter((type) => !isFolded(type))])
    expect(foldRun(run, { type, data: {}, ts: TS, attempt_number: 1 })).toBe(run);
});

describe('how a question waits', () => {
  test('follows the stored options', () => {
    expect(waitRules({ session_timeout_sec: 5, interactive_require_user_reply: true }, false)).toEqual({
      session_timeout_sec: 5,
      decides: false,
    });
  });

  test('always ends for a sticky session', () => {
    expect(waitRules({ interactive_require_user_reply: true }, true).decides).toBe(true);
  });

  test('has the defaults where the options are missing or damaged', () => {
    for (const options of [undefined, {}, { session_timeout_sec: 'x', interactive_require_user_reply: 7 }])
      expect(waitRules(options, false)).toEqual({ session_timeout_sec: 1200, decides: false });
  });
});
