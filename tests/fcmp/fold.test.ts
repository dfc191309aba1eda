import { describe, expect, test } from 'vitest';
import { FCMP_TYPES, type FcmpEvent } from '../../src/fcmp/event.js';
import {
  ConversationFold,
  foldInputOf,
  foldInputOfDraft,
  projectConversation,
  type FoldInput,
} from '../../src/fcmp/fold.js';
import { explainFcmp } from '../../src/fcmp/validate.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import { RASP_TYPES, type RaspData, type RaspEvent, type RaspType } from '../../src/rasp/event.js';
import { eventOf, joinLines, parse } from '../support/parse.js';

const TS = '2026-11-15T00:00:00.000Z';

function input(type: string, data: unknown, rest: Partial<FoldInput> = {}): FoldInput {
  return { seq: 1, ts: TS, attempt: 1, type, data, itemId: null, range: null, ...rest };
}

function events(lines: readonly string[]): FcmpEvent[] {
  return lines.map((line) => {
    const event = JSON.parse(line) as FcmpEvent;
    expect(explainFcmp(event), line).toBeNull();
    return event;
  });
}

// The output of one RASP event in a fresh fold: types and data.
function shown(type: string, data: unknown, rest: Partial<FoldInput> = {}): [string, unknown][] {
  return events(new ConversationFold('run_test').push(input(type, data, rest))).map((event) => [
    event.type,
    event.data,
  ]);
}

function foldAll(inputs: readonly FoldInput[]): FcmpEvent[] {
  const fold = new ConversationFold('run_test');
  return events(inputs.flatMap((each) => fold.push(each)));
}

const ENDED: RaspData['lifecycle.turn.ended'] = {
  exit: { code: 0, signal: null },
  completion: { result: 'completed', reason_code: 'ENGINE_SUCCESS' },
  streams: { stdout: { bytes: 1, sha256: 'a' }, stderr: { bytes: 0, sha256: 'b' } },
  parser: { profile: 'codex_ndjson', units: 1, parsed: 1, fallbacks: 0, hit_rate: 1, warnings: {} },
};
const QUESTION: RaspData['interaction.requested'] = {
  interaction_id: 'int_1',
  kind: 'choose_one',
  prompt: 'Which?',
  options: [{ label: 'A', value: 'a' }],
  default: 'a',
  channel: 'tool',
  asked_at: TS,
};
const REPLY: RaspData['interaction.reply.accepted'] = {
  interaction_id: 'int_1',
  resolution_mode: 'user_reply',
  accepted_at: TS,
  response: { a: 1 },
  actor: { kind: 'user', name: 'ada' },
  idempotency_key: 'key-1',
};
const TIMEOUT: RaspData['interaction.auto_decide.timeout'] = {
  interaction_id: 'int_1',
  resolution_mode: 'auto_decide_timeout',
  policy: 'use_default',
  response: 'a',
  decided_at: TS,
};
const APPROVAL: RaspData['interaction.approval.applied'] = {
  interaction_id: 'int_1',
  decision: 'approve',
  digest: 'd',
  applied_at: TS,
};

function changed(from: string, to: string, trigger: string, rest: object = {}): object {
  return { from, to, trigger, updated_at: TS, ...rest };
}

function turn(attempt: number): FoldInput[] {
  return [
    input('agent.message.final', { text: `turn ${attempt}` }, { seq: attempt * 10, attempt }),
    input('raw.stdout', { text: `turn ${attempt}` }, { seq: attempt * 10 + 1, attempt }),
    input('lifecycle.turn.ended', ENDED, { seq: attempt * 10 + 2, attempt }),
    input('lifecycle.state.changed', changed('running', 'succeeded', 'turn.succeeded'), {
      seq: attempt * 10 + 3,
      attempt,
    }),
  ];
}

// Every RASP type with data for it, and the part that a person sees.
const TABLE: { readonly [T in RaspType]: readonly [RaspData[T], readonly [string, object][]] } = {
  'lifecycle.run.created': [
    { engine: 'codex', execution_mode: 'interactive', prompt: 'Say hello', request_id: 'r1' },
    [
      ['conversation.started', { engine: 'codex', execution_mode: 'interactive', fold_version: 1 }],
      ['user.message', { text: 'Say hello' }],
    ],
  ],
  'lifecycle.state.changed': [
    { from: 'queued', to: 'running', trigger: 'turn.started', updated_at: TS },
    [['conversation.state.changed', { from: 'queued', to: 'running', trigger: 'turn.started', updated_at: TS }]],
  ],
  'lifecycle.turn.started': [{ argv: ['codex'], resumed: false }, []],
  'lifecycle.process.spawned': [{ pid: 7, start_time: '1' }, []],
  'lifecycle.process.ended': [
    { streams: { stdout: { from: 7, bytes: 0, sha256: '' }, stderr: { bytes: 0, sha256: '' } } },
    [],
  ],
  'lifecycle.session.bound': [{ session_id: 's', handle_type: 'session_id' }, []],
  'lifecycle.session.confirmed': [
    { session: { session_id: 's', handle_type: 'session_id', created_at_attempt: 1 } },
    [],
  ],
  'lifecycle.cancel.requested': [{ requested_at: TS, actor: { kind: 'user', name: 'ada' } }, []],
  'lifecycle.engine.progress': [{ phase: 'turn.started' }, []],
  'lifecycle.turn.silent': [
    { noticed_at: '2026-01-01T00:30:00.000Z', silent_sec: 1800, tool_running: true },
    [
      [
        'diagnostic.warning',
        { code: 'TURN_SILENT', message: 'No output for 30 minutes, a tool call is running. The turn goes on.' },
      ],
    ],
  ],
  'lifecycle.turn.ended': [ENDED, []],
  'agent.message.delta': [{ text: 'Hel' }, [['assistant.message.delta', { message_id: 'item_1', text: 'Hel' }]]],
  'agent.message.final': [{ text: 'Hello' }, [['assistant.message.final', { message_id: 'item_1', text: 'Hello' }]]],
  'agent.reasoning': [{ text: 'Hm' }, [['assistant.reasoning', { text: 'Hm' }]]],
  'agent.plan': [{ items: [{ text: 'a', done: true }] }, [['assistant.plan', { items: [{ text: 'a', done: true }] }]]],
  'agent.usage': [{ scope: 'turn', input_tokens: 1 }, [['usage', { scope: 'turn', input_tokens: 1 }]]],
  'tool.call.started': [
    { name: 'shell', kind: 'command', input: { command: 'ls' } },
    [['assistant.tool.started', { call_id: 'item_1', name: 'shell', kind: 'command', input: { command: 'ls' } }]],
  ],
  'tool.call.updated': [{ name: 'shell', kind: 'command', output: 'a' }, []],
  'tool.call.completed': [
    { name: 'shell', kind: 'command', status: 'failed', output: 'a', exit_code: 1 },
    [
      [
        'assistant.tool.completed',
        { call_id: 'item_1', name: 'shell', kind: 'command', status: 'failed', output: 'a', exit_code: 1 },
      ],
    ],
  ],
  'artifact.file.changed': [{ path: '/w/a', kind: 'add' }, [['artifact.file.changed', { path: '/w/a', kind: 'add' }]]],
  'artifact.result.written': [{ path: '/w/r', bytes: 5 }, []],
  'interaction.requested': [
    QUESTION,
    [
      [
        'user.input.required',
        {
          interaction_id: 'int_1',
          kind: 'choose_one',
          prompt: 'Which?',
          options: [{ label: 'A', value: 'a' }],
          default: 'a',
          channel: 'tool',
        },
      ],
    ],
  ],
  'interaction.reply.accepted': [
    REPLY,
    [
      [
        'interaction.reply.accepted',
        {
          interaction_id: 'int_1',
          resolution_mode: 'user_reply',
          accepted_at: TS,
          response: { a: 1 },
          actor: { kind: 'user', name: 'ada' },
        },
      ],
    ],
  ],
  'interaction.auto_decide.timeout': [
    TIMEOUT,
    [
      [
        'interaction.auto_decide.timeout',
        { interaction_id: 'int_1', resolution_mode: 'auto_decide_timeout', policy: 'use_default', response: 'a' },
      ],
    ],
  ],
  'interaction.approval.applied': [APPROVAL, []],
  'diagnostic.parser.warning': [
    { code: 'FIELD_DRIFT', message: 'm', path: 'p' },
    [['diagnostic.warning', { code: 'FIELD_DRIFT', message: 'm' }]],
  ],
  'diagnostic.engine.warning': [{ message: 'm' }, [['diagnostic.warning', { code: 'ENGINE_WARNING', message: 'm' }]]],
  'diagnostic.engine.error': [
    { message: 'm', terminal: true, http_status: 500 },
    [['diagnostic.warning', { code: 'ENGINE_ERROR', message: 'm', terminal: true }]],
  ],
  'diagnostic.completion.unknown': [
    { reason_code: 'NO_RESULT', message: 'm' },
    [['diagnostic.warning', { code: 'COMPLETION_UNKNOWN', message: 'm' }]],
  ],
  'raw.stdout': [{ text: 'a' }, [['raw.stdout', { text: 'a' }]]],
  'raw.stderr': [{ text: 'b' }, [['raw.stderr', { text: 'b' }]]],
};

describe('every RASP type', () => {
  test.each(RASP_TYPES)('%s gives exactly its visible part', (type) => {
    const [data, expected] = TABLE[type];
    const itemId = /^(agent\.message|tool)\./.test(type) ? 'item_1' : null;
    expect(shown(type, data, { itemId })).toEqual(expected);
  });

  test('every FCMP type is given by some RASP type', () => {
    const types = new Set(Object.values(TABLE).flatMap(([, expected]) => expected.map(([type]) => type)));
    const terminal = ['conversation.completed', 'conversation.failed', 'conversation.canceled'];
    expect(new Set([...types, ...terminal])).toEqual(new Set<string>(FCMP_TYPES));
  });

  test('a raw line that is blank and the note about stderr are not shown', () => {
    expect(shown('raw.stdout', { text: '  ' })).toEqual([]);
    expect(shown('raw.stderr', { text: '' })).toEqual([]);
    expect(shown('diagnostic.parser.warning', { code: 'STDERR_TEXT', message: 'm', lines: 2 })).toEqual([]);
  });

  test('a message that was cut says so', () => {
    expect(shown('agent.message.final', { text: 'a', truncated: true }, { itemId: 'x' })).toEqual([
      ['assistant.message.final', { message_id: 'x', text: 'a', truncated: true }],
    ]);
  });

  test('an event without an item id has null in its place', () => {
    expect(shown('agent.message.delta', { text: 'a' })).toEqual([
      ['assistant.message.delta', { message_id: null, text: 'a' }],
    ]);
  });
});

describe('state', () => {
  test('an accepted reply is shown before the change of state it causes, with its trigger', () => {
    const trigger = 'interaction.reply.accepted';
    const seen = foldAll([
      input('interaction.reply.accepted', REPLY, { seq: 4 }),
      input('lifecycle.state.changed', changed('waiting_user', 'queued', trigger), { seq: 5 }),
    ]);
    expect(seen.map(({ type, rasp_seq }) => [type, rasp_seq])).toEqual([
      ['interaction.reply.accepted', 4],
      ['conversation.state.changed', 5],
    ]);
    expect(seen[1]?.data).toEqual({ from: 'waiting_user', to: 'queued', trigger, updated_at: TS });
    expect(seen[0]?.data).toMatchObject({ interaction_id: 'int_1', resolution_mode: 'user_reply', accepted_at: TS });
  });

  test('an automatic decision is shown before the change of state it causes, with its trigger', () => {
    const trigger = 'interaction.auto_decide.timeout';
    const seen = foldAll([
      input('interaction.auto_decide.timeout', TIMEOUT, { seq: 4 }),
      input('lifecycle.state.changed', changed('waiting_user', 'queued', trigger), { seq: 5 }),
    ]);
    expect(seen.map(({ type }) => type)).toEqual(['interaction.auto_decide.timeout', 'conversation.state.changed']);
    expect(seen[1]?.data).toEqual({ from: 'waiting_user', to: 'queued', trigger, updated_at: TS });
    expect(seen[0]?.data).toMatchObject({
      interaction_id: 'int_1',
      resolution_mode: 'auto_decide_timeout',
      policy: 'use_default',
    });
  });

  test('a run that keeps waiting after a restart shows nothing', () => {
    expect(
      shown('lifecycle.state.changed', changed('waiting_user', 'waiting_user', 'restart.preserve_waiting')),
    ).toEqual([]);
  });

  const error = { code: 'ENGINE_TURN_FAILED', message: 'boom', details: { a: 1 } };
  const actor = { kind: 'user', name: 'ada' };
  test.each([
    [
      'a success',
      changed('running', 'succeeded', 'turn.succeeded', { result: { files: 2 } }),
      'conversation.completed',
      { result: { files: 2 } },
    ],
    ['a success without a result', changed('running', 'succeeded', 'turn.succeeded'), 'conversation.completed', {}],
    ['a failure', changed('running', 'failed', 'turn.failed', { error }), 'conversation.failed', { error }],
    [
      'a failure after a restart',
      changed('queued', 'failed', 'restart.reconcile_failed', { error }),
      'conversation.failed',
      { error },
    ],
    [
      'a failure without a reason',
      changed('running', 'failed', 'turn.failed'),
      'conversation.failed',
      { error: { code: 'INTERNAL', message: expect.any(String) as unknown } },
    ],
    ['a cancel', changed('waiting_user', 'canceled', 'run.canceled', { actor }), 'conversation.canceled', { actor }],
    ['a cancel by nobody in particular', changed('queued', 'canceled', 'run.canceled'), 'conversation.canceled', {}],
  ])('%s is shown right before the last change of state', (_name, data, type, terminal) => {
    const { from, to, trigger } = data as { from: string; to: string; trigger: string };
    expect(shown('lifecycle.state.changed', data)).toEqual([
      [type, terminal],
      ['conversation.state.changed', { from, to, trigger, updated_at: TS }],
    ]);
  });

  test('a change of state that lacks a member is refused, not shown', () => {
    for (const member of ['from', 'to', 'trigger', 'updated_at']) {
      const data = Object.fromEntries(
        Object.entries(changed('queued', 'running', 'turn.started')).filter(([name]) => name !== member),
      );
      expect(() => shown('lifecycle.state.changed', data), member).toThrow('conversation.state.changed');
    }
  });
});

describe('later versions', () => {
  test('types and categories that are not known yet are passed over without an error', () => {
    const unknown = [
      'agent.hologram',
      'lifecycle.moved',
      'weather.changed',
      'raw.pty',
      'diagnostic',
      '',
      'constructor',
      '__proto__',
      'toString',
    ];
    for (const type of unknown) expect(shown(type, { anything: 1 }), type).toEqual([]);
    for (const type of unknown) expect(shown(type, null), type).toEqual([]);
  });

  test('the conversation continues after one, without a gap', () => {
    const seen = foldAll([
      input('agent.message.final', { text: 'a' }, { seq: 1 }),
      input('weather.changed', {}, { seq: 2 }),
      input('agent.message.final', { text: 'b' }, { seq: 3 }),
    ]);
    expect(seen.map(({ seq, rasp_seq }) => [seq, rasp_seq])).toEqual([
      [1, 1],
      [2, 3],
    ]);
  });

  test('members that are not known yet do not disturb', () => {
    expect(shown('agent.message.final', { text: 'a', mood: 'good' })).toEqual([
      ['assistant.message.final', { message_id: null, text: 'a' }],
    ]);
  });
});

describe('the envelope', () => {
  test('it has its own seq, the seq it came from, and the time and attempt of that event', () => {
    const seen = foldAll([
      input('lifecycle.run.created', TABLE['lifecycle.run.created'][0], { seq: 10 }),
      input('lifecycle.turn.started', { argv: [], resumed: false }, { seq: 11 }),
      input('agent.message.final', { text: 'a' }, { seq: 12, attempt: 3, ts: '2026-11-15T00:00:01.500Z' }),
    ]);
    expect(seen.map(({ seq, rasp_seq, attempt_number, ts }) => [seq, rasp_seq, attempt_number, ts])).toEqual([
      [1, 10, 1, TS],
      [2, 10, 1, TS],
      [3, 12, 3, '2026-11-15T00:00:01.500Z'],
    ]);
    expect(seen.every((event) => event.protocol_version === 'fcmp/1.0' && event.run_id === 'run_test')).toBe(true);
  });

  test('a fold that was saved between turns continues where it stopped', () => {
    const whole = new ConversationFold('run_test');
    const expected = [...turn(1), ...turn(2)].flatMap((each) => whole.push(each));
    const first = new ConversationFold('run_test');
    const before = turn(1).flatMap((each) => first.push(each));
    const second = new ConversationFold(
      'run_test',
      JSON.parse(JSON.stringify(first.save())) as ReturnType<ConversationFold['save']>,
    );
    expect([...before, ...turn(2).flatMap((each) => second.push(each))]).toEqual(expected);
    expect(second.save()).toEqual(whole.save());
  });

  test('a fold cannot be saved while it holds lines back, nor be continued by another version', () => {
    const fold = new ConversationFold('run_test');
    fold.push(input('agent.message.final', { text: 'a' }));
    fold.push(input('raw.stdout', { text: 'a' }));
    expect(() => fold.save()).toThrow('between turns');
    expect(() => new ConversationFold('run_test', { version: 999, seq: 5 })).toThrow('999');
  });
});

// Unusual on purpose: keys that look like numbers, halves of characters, every kind of escape, numbers that JSON cannot
// represent.
const STDOUT = joinLines(
  '{"type":"thread.started","thread_id":"01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c"}',
  '{"type":"turn.started"}',
  '{"type":"item.completed","item":{"id":"item_0","type":"reasoning","text":"\\u00e9\\/\\ud83d\\ude80 \\ud83d"}}',
  '{"type":"item.started","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t",' +
    '"arguments":{"b":1,"2":1e400,"1":-0,"__proto__":{"x":1}},"result":null,"error":null,' +
    '"status":"in_progress"}}',
  '{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t",' +
    '"arguments":{},"result":{"content":[]},"error":{"message":"e"},"status":"failed"}}',
  '{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"ls",' +
    '"aggregated_output":"a\\u2028\\n\\"b\\"","exit_code":0,"status":"completed"}}',
  '{"type":"item.completed","item":{"id":"item_3","type":"file_change","changes":[{"path":"a",' +
    '"kind":"add"}],"status":"completed"}}',
  '{"type":"item.completed","item":{"id":"item_4","type":"todo_list","items":[{"text":"a","completed":true}]}}',
  '{"type":"item.completed","item":{"id":"item_5","type":"agent_message","text":"one\\ntwo\\nthree"}}',
  'one',
  'two',
  'three',
  'four',
  'one',
  '{"type":"error","message":"Reconnecting... 1/2"}',
  '{"type":"hologram"}',
  '{"type":"turn.completed","usage":{"input_tokens":1}}',
);

// The events of a whole run around the output of the engine.
function journal(): RaspDraft[] {
  return [
    draft('lifecycle.run.created', { engine: 'codex', execution_mode: 'interactive', prompt: 'Say "hello" 🚀' }),
    draft('lifecycle.state.changed', { from: 'queued', to: 'running', trigger: 'turn.started', updated_at: TS }),
    ...parse('codex', { stdout: STDOUT, stderr: 'one\ntwo\nthree\nnoise\n' }).drafts,
    draft('lifecycle.turn.ended', ENDED),
    draft(
      'interaction.requested',
      { ...QUESTION, fields: undefined, options: [{ label: 'A', value: 'a', description: undefined }] },
      { interactionId: 'int_1' },
    ),
    draft('lifecycle.state.changed', {
      from: 'running',
      to: 'waiting_user',
      trigger: 'turn.needs_input',
      updated_at: TS,
      error: undefined,
      result: undefined,
    }),
    draft('interaction.reply.accepted', REPLY, { interactionId: 'int_1' }),
  ];
}

describe('rebuilding', () => {
  test('folding stored events gives the same bytes as folding live drafts', () => {
    const live = new ConversationFold('run_test');
    const drafts = journal();
    const streamed = drafts.flatMap((each, index) => live.push(foldInputOfDraft(each, index + 1, TS, 1)));
    const stored = drafts.map((each, index) => JSON.stringify(eventOf(each, index + 1)));
    const rebuilt = projectConversation(
      'run_test',
      stored.map((line) => JSON.parse(line) as RaspEvent),
    );
    expect(rebuilt).toEqual(streamed);
    expect(streamed.length).toBeGreaterThan(20);
    expect(events(streamed).map(({ seq }) => seq)).toEqual(streamed.map((_, index) => index + 1));
    expect(events(streamed).filter(({ data }) => data['code'] === 'RAW_DUPLICATE_SUPPRESSED')).toHaveLength(2);
  });

  test('folding the same journal twice gives the same bytes', () => {
    const stored = journal().map((each, index) => eventOf(each, index + 1));
    expect(projectConversation('run_test', stored)).toEqual(projectConversation('run_test', stored));
  });

  test('the fold does not change its arguments', () => {
    const stored = journal().map((each, index) => eventOf(each, index + 1));
    const before = JSON.stringify(stored);
    projectConversation('run_test', stored);
    expect(JSON.stringify(stored)).toBe(before);
  });

  test('the fold reads the same fields from a draft and from the stored event', () => {
    for (const [index, each] of journal().entries()) {
      // Only a draft has the text of its data.
      const { json, ...fields } = foldInputOfDraft(each, index + 1, TS, 1);
      expect(json).toBe(each.json);
      expect(JSON.stringify(foldInputOf(eventOf(each, index + 1)))).toBe(JSON.stringify(fields));
    }
  });
});
