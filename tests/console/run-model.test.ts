// The conversation as rows, without a page: added, replaced and folded rows, and linear cost for long conversations.
import { expect, test } from 'vitest';
import { RunModel } from '../../console/src/state/run-model.js';
import type { Row } from '../../console/src/state/run-rows.js';
import type { FcmpData, FcmpEvent } from '../../src/fcmp/event.js';
import { expectLinear } from '../support/growth.js';

type EventInput = { [T in keyof FcmpData]: readonly [T, FcmpData[T], attempt?: number] }[keyof FcmpData];

const T0 = Date.parse('2026-01-01T00:00:00.000Z');
const at = (seconds: number): string => new Date(T0 + seconds * 1000).toISOString();

// A second between each; the seq of RASP is ten times its own.
function* events(inputs: Iterable<EventInput>): Generator<FcmpEvent> {
  let seq = 0;
  for (const [type, data, attempt = 1] of inputs) {
    seq += 1;
    yield {
      protocol_version: 'fcmp/1.0',
      run_id: 'run_x',
      seq,
      ts: at(seq),
      attempt_number: attempt,
      rasp_seq: seq * 10,
      type,
      data: data as unknown as FcmpEvent['data'],
    };
  }
}

function fold(...inputs: EventInput[]): RunModel {
  const model = new RunModel();
  for (const event of events(inputs)) model.push(event);
  return model;
}

const STARTED: EventInput = ['conversation.started', { engine: 'x', execution_mode: 'interactive', fold_version: 1 }];
const change = (
  from: FcmpData['conversation.state.changed']['from'],
  to: FcmpData['conversation.state.changed']['to'],
  seconds: number,
  attempt = 1,
): EventInput => [
  'conversation.state.changed',
  { from, to, trigger: 'turn.started', updated_at: at(seconds) },
  attempt,
];
const ask = (id: string): EventInput => [
  'user.input.required',
  { interaction_id: id, kind: 'open_text', prompt: 'Which?', options: [] },
];
const items = (done: boolean) => ({ items: [{ text: 'a', done }] });
const usage = (scope: 'step' | 'turn' | 'thread', tokens: number): EventInput => [
  'usage',
  { scope, input_tokens: tokens },
];
const types = ({ rows }: RunModel) => rows.map(({ type }) => type);
const only = <T extends Row['type']>({ rows }: RunModel, type: T) =>
  rows.filter((row) => row.type === type) as Extract<Row, { type: T }>[];

test('pieces of a message grow one row, and the whole message replaces them', () => {
  const model = fold(
    ['assistant.message.delta', { message_id: 'm', text: 'Hel' }],
    ['assistant.message.delta', { message_id: 'm', text: 'lo' }],
  );
  expect(model.rows).toMatchObject([{ type: 'message', text: 'Hello', state: 'growing', rasp: [10, 20], rev: 1 }]);
  const whole = fold(
    ['assistant.message.delta', { message_id: 'm', text: 'Hel' }],
    ['assistant.message.final', { message_id: 'm', text: 'Hello.' }],
  );
  expect(whole.rows).toMatchObject([{ text: 'Hello.', state: 'whole', rasp: [10, 20] }]);
});

test('two messages that grow at the same time stay apart, and one without an id is one of its own', () => {
  const model = fold(
    ['assistant.message.delta', { message_id: 'a', text: '1' }],
    ['assistant.message.delta', { message_id: null, text: '2' }],
    ['assistant.message.delta', { message_id: 'a', text: '3' }],
    ['assistant.message.final', { message_id: null, text: 'two' }],
  );
  expect(only(model, 'message').map(({ text, state }) => [text, state])).toEqual([
    ['13', 'growing'],
    ['two', 'whole'],
  ]);
});

test('the text of a turn that was cut off is kept, and said to be cut; an id counts within its turn', () => {
  const model = fold(
    STARTED,
    change('queued', 'running', 2),
    ['assistant.message.delta', { message_id: 'm', text: 'Half' }],
    change('running', 'failed', 4),
  );
  expect(only(model, 'message')).toMatchObject([{ text: 'Half', state: 'cut' }]);
  const two = fold(
    STARTED,
    ['assistant.message.delta', { message_id: 'm', text: 'One' }],
    change('running', 'waiting_user', 3),
    ['assistant.message.delta', { message_id: 'm', text: 'Two' }, 2],
  );
  expect(only(two, 'message').map(({ text, state }) => [text, state])).toEqual([
    ['One', 'whole'],
    ['Two', 'growing'],
  ]);
});

test('a truncated message keeps its pieces, which have more', () => {
  const model = fold(
    ['assistant.message.delta', { message_id: 'm', text: 'long text' }],
    ['assistant.message.final', { message_id: 'm', text: 'long', truncated: true }],
  );
  expect(only(model, 'message')).toMatchObject([{ text: 'long text', isTruncated: true, state: 'whole' }]);
});

test('a tool call is one row, even when it ends in a later turn; an unfinished one is marked', () => {
  const started: EventInput = [
    'assistant.tool.started',
    { call_id: 'c', name: 'shell', kind: 'command', input: { command: 'ls' } },
  ];
  const model = fold(STARTED, started, ask('i'), [
    'assistant.tool.completed',
    { call_id: 'c', name: 'shell', kind: 'command', status: 'completed', exit_code: 0, output: 'x', duration_ms: 5 },
    2,
  ]);
  expect(only(model, 'tool')).toMatchObject([
    { status: 'completed', exitCode: 0, output: 'x', durationMs: 5, input: { command: 'ls' }, rasp: [20, 40] },
  ]);
  expect(only(fold(STARTED, started, change('running', 'failed', 3)), 'tool')).toMatchObject([
    { status: 'unfinished' },
  ]);
  expect(only(fold(started, started), 'tool').map(({ status }) => status)).toEqual(['unfinished', 'running']);
});

test('files, lines of output and thoughts in a row are one row each', () => {
  const model = fold(
    ['artifact.file.changed', { path: 'a', kind: 'add' }],
    ['artifact.file.changed', { path: 'b', kind: 'update' }],
    ['raw.stderr', { text: '1' }],
    ['raw.stderr', { text: '2' }],
    ['raw.stdout', { text: '3' }],
    ['assistant.reasoning', { text: 'x' }],
    ['assistant.reasoning', { text: 'y' }],
  );
  expect(types(model)).toEqual(['files', 'details', 'reasoning']);
  expect(model.rows).toMatchObject([
    { files: [{ path: 'a' }, { path: 'b' }] },
    { counts: { stderr: 2, stdout: 1 }, details: [{ text: '1' }, { text: '2' }, { text: '3' }] },
    { text: 'x\n\ny' },
  ]);
});

test('engine output of a turn is one row, with warnings and the done marker', () => {
  const model = fold(
    ['raw.stderr', { text: '1' }],
    ['assistant.message.final', { message_id: 'm', text: 'Ready.\n{"done":true,"result":1}' }],
    ['diagnostic.warning', { code: 'ENGINE_ERROR', message: 'broke', terminal: true }],
    ['assistant.message.final', { message_id: 'n', text: '{"done":true}' }],
    ['raw.stderr', { text: '2' }, 2],
  );
  expect(types(model)).toEqual(['details', 'message', 'details']);
  expect(only(model, 'message')).toMatchObject([{ text: 'Ready.' }]);
  expect(only(model, 'details')).toMatchObject([
    { counts: { stderr: 1, warning: 1, done: 2 }, rasp: [10, 20, 30, 40] },
    { counts: { stderr: 1 } },
  ]);
});

test('a plan takes the place of the one before', () => {
  const model = fold(
    ['assistant.plan', items(false)],
    ['user.message', { text: 'x' }],
    ['assistant.plan', items(false)],
    ['assistant.plan', items(true)],
  );
  expect(only(model, 'plan').map(({ isOld, items: [first] }) => [isOld, first?.done])).toEqual([
    [true, false],
    [false, true],
  ]);
});

test('usage of a turn is shown once, at its end: of the turn, else the conversation, else its steps', () => {
  expect(only(fold(STARTED, usage('step', 1), usage('step', 2), ask('i')), 'usage')).toMatchObject([
    { usage: { input_tokens: 3 }, rasp: [20, 30] },
  ]);
  expect(
    only(fold(STARTED, usage('thread', 1), usage('thread', 9), usage('step', 2), ask('i')), 'usage'),
  ).toMatchObject([{ usage: { input_tokens: 9 } }]);
  expect(
    only(fold(STARTED, usage('turn', 5), usage('thread', 9), change('running', 'succeeded', 4)), 'usage'),
  ).toMatchObject([{ usage: { input_tokens: 5 } }]);
  expect(types(fold(STARTED, usage('turn', 5), ask('i')))).toEqual(['usage', 'question']);
});

test('a question waits until it is answered, decided, or the run has ended', () => {
  expect(fold(ask('i')).pending?.interactionId).toBe('i');
  const answered = fold(ask('i'), [
    'interaction.reply.accepted',
    {
      interaction_id: 'i',
      resolution_mode: 'user_reply',
      accepted_at: at(2),
      response: 'A',
      actor: { kind: 'user', name: 'ann' },
    },
  ]);
  expect(answered.pending).toBeNull();
  expect(answered.rows).toMatchObject([
    { resolution: { type: 'answered', by: 'ann', response: 'A', finish: false, at: at(2) } },
  ]);
  expect(
    fold(ask('i'), [
      'interaction.auto_decide.timeout',
      { interaction_id: 'i', resolution_mode: 'auto_decide_timeout', policy: 'use_default', response: 'B' },
    ]).rows,
  ).toMatchObject([{ resolution: { type: 'decided', policy: 'use_default', response: 'B' } }]);
  expect(
    fold(STARTED, ask('i'), ['conversation.canceled', {}], change('waiting_user', 'canceled', 4)).rows,
  ).toMatchObject([{ resolution: { type: 'gone' } }, { type: 'end', end: { state: 'canceled' } }]);
});

test('attempts are separated, with the waiting time; the path through the chart is counted', () => {
  const model = fold(
    STARTED,
    change('queued', 'running', 2),
    ask('i'),
    change('running', 'waiting_user', 4),
    change('waiting_user', 'queued', 64),
    change('queued', 'running', 65, 2),
    change('running', 'succeeded', 70, 2),
  );
  expect(only(model, 'attempt')).toMatchObject([{ number: 2, waitedMs: 60_000 }]);
  expect(Object.fromEntries(model.path.visits)).toEqual({ queued: 2, running: 2, waiting_user: 1, succeeded: 1 });
  expect(model.path.edges.get('queued>running')).toBe(2);
  expect(
    model.path.attempts.map(({ spans }) => spans.map(({ state, from, to }) => [state, (Number(to) - from) / 1000])),
  ).toEqual([
    [
      ['queued', 1],
      ['running', 2],
      ['waiting_user', 60],
    ],
    [
      ['queued', 1],
      ['running', 5],
    ],
  ]);
  expect(model.path.waitedMs(T0)).toBe(60_000);
  expect(fold(STARTED, change('running', 'waiting_user', 4)).path.waitedMs(T0 + 10_000)).toBe(6000);
});

test('every row has a key of its own, also when one event makes two', () => {
  const { rows } = fold(
    STARTED,
    ['usage', { scope: 'turn' }],
    ask('i'),
    ['conversation.failed', { error: { code: 'INTERNAL', message: 'x' } }],
    change('running', 'failed', 5),
  );
  expect(new Set(rows.map(({ key }) => key)).size).toBe(rows.length);
});

test('an event of a later version is a row, not an error', () => {
  const model = new RunModel();
  model.push({
    protocol_version: 'fcmp/1.0',
    run_id: 'r',
    seq: 1,
    ts: at(1),
    attempt_number: 1,
    rasp_seq: 1,
    type: 'assistant.dance',
    data: { steps: 3 },
  });
  expect(model.rows).toMatchObject([{ type: 'unknown', name: 'assistant.dance', data: { steps: 3 } }]);
});

test('two hundred thousand pieces are folded in linear time', async () => {
  const inputs = Array.from({ length: 200_000 }, (_, index): EventInput =>
    index % 2 === 0
      ? ['assistant.message.delta', { message_id: 'm', text: 'abcdefgh' }]
      : ['raw.stderr', { text: 'x' }],
  );
  const list = [...events(inputs)];
  const fold = (count: number): RunModel => {
    const model = new RunModel();
    for (const event of list.slice(0, count)) model.push(event);
    return model;
  };
  await expectLinear(50_000, fold);
  expect(only(fold(200_000), 'message')[0]?.text).toHaveLength(800_000);
});
