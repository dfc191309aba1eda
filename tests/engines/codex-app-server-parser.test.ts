import { describe, expect, test } from 'vitest';
import { itemKey } from '../../src/engines/codex-app-server/file-changes.js';
import { newMemory, type ReaderMemory } from '../../src/engines/turn-parser.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { measureCover } from '../../src/rasp/cover.js';
import type { RaspDraft } from '../../src/rasp/draft.js';
import { APP_SERVER, loadRecording, RECORDINGS } from '../support/codex-app-server.js';
import {
  brief,
  dataOf,
  eventOf,
  joinLines,
  ofType,
  parse,
  typesOf,
  warningsOf,
  type Parsed,
} from '../support/parse.js';
import { requestMessage } from '../support/request-message.js';

const THREAD = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const OTHER = '01a1e065-0000-7fd2-a5f7-dea3d46cd55c';

const OPENED = json({ id: 2, result: { thread: { id: THREAD }, model: 'gpt-5.5' } });
const COMPLETED = turn('completed');
// Of another process.
const GREETING = json({ id: 1, result: { userAgent: 'x', codexHome: '/h' } });

function json(value: Json): string {
  return JSON.stringify(value);
}

function note(method: string, params: JsonObject = {}, threadId: string = THREAD): string {
  return json({ method, params: { threadId, ...params }, emittedAtMs: 1 });
}

function item(phase: 'started' | 'completed', body: JsonObject): string {
  return note(`item/${phase}`, { item: { id: 'i1', ...body } });
}

function began(id = 't', threadId: string = THREAD): string {
  return note('turn/started', { turn: { id, items: [], status: 'inProgress' } }, threadId);
}

function turn(status: string, error: Json = null, id = 't'): string {
  return note('turn/completed', { turn: { id, items: [], status, error } });
}

function ask(
  id: string | number,
  method = 'item/tool/call',
  params: JsonObject = { tool: 'ask_human', arguments: { prompt: `Question ${id}?` } },
  threadId: string = THREAD,
): string {
  return json({ method, id, params: { threadId, ...params } });
}

function read(...lines: readonly string[]): Parsed {
  return parse(APP_SERVER, { stdout: joinLines(...lines) });
}

function readWith(memory: ReaderMemory, ...lines: readonly string[]): Parsed {
  return parse(APP_SERVER, { stdout: joinLines(...lines) }, { memory });
}

// The drafts of one line in a known thread.
function readOne(line: string): readonly RaspDraft[] {
  return read(OPENED, line).drafts.slice(2);
}

const recorded = (name: string) => parse(APP_SERVER, { stdout: loadRecording(name) });
const error = (info: Json, message = 'unexpected status', additionalDetails: Json = null) => ({
  message,
  codexErrorInfo: info,
  additionalDetails,
});
const bound = (parsed: Parsed) => dataOf(parsed.drafts, 'lifecycle.session.bound').map(({ session_id: id }) => id);
const move = (diff: string) => [{ path: '/w/a', kind: { type: 'update', move_path: '/w/b' }, diff }];
const progress = (phase: string) => ['lifecycle.engine.progress', { phase }];

// The content of a draft without its session.
const content = (drafts: readonly RaspDraft[]) =>
  drafts
    .filter(({ type }) => type !== 'lifecycle.session.bound')
    .map(({ type, data, json, parser, confidence, itemId, range }) => ({
      type,
      data,
      json,
      parser,
      confidence,
      itemId,
      range,
    }));

describe.each(RECORDINGS)('the recording %s', (name) => {
  const stdout = loadRecording(name);
  const whole = parse(APP_SERVER, { stdout });

  test('is understood line by line, and every byte of it is covered', () => {
    const lines = stdout.toString('utf8').trimEnd().split('\n').length;
    expect(whole.counts).toEqual({
      profile: 'codex_app_server',
      units: lines,
      parsed: lines,
      fallbacks: 0,
      warnings: {},
    });
    expect(
      measureCover(
        whole.drafts.map((draft, index) => eventOf(draft, index + 1)),
        'stdout',
      ),
    ).toEqual({ covered: stdout.length, holes: 0, overlaps: 0 });
    expect(whole.drafts.every(({ parser, confidence }) => parser === 'codex_app_server' && confidence === 1)).toBe(
      true,
    );
  });

  test('gives the same wherever the chunks end', () => {
    for (const chunkBytes of [1, 7, 4096]) {
      const { drafts, evidence, counts, openRequests } = parse(APP_SERVER, { stdout, chunkBytes });
      expect({ drafts, evidence, counts, openRequests }).toEqual({
        drafts: whole.drafts,
        evidence: whole.evidence,
        counts: whole.counts,
        openRequests: whole.openRequests,
      });
    }
  });

  test('gives the same events when parsed in slices with shared memory, each naming the session once', () => {
    const memory = newMemory();
    const lines = stdout.toString('utf8').split(/(?<=\n)/);
    const drafts: RaspDraft[] = [];
    let at = 0;
    for (let from = 0; from < lines.length; from += 5) {
      const slice = Buffer.from(lines.slice(from, from + 5).join(''));
      const parsed = parse(APP_SERVER, { stdout: slice }, { at: { stdout: at, stderr: 0 }, memory });
      const bound = dataOf(parsed.drafts, 'lifecycle.session.bound').map(({ session_id: id }) => id);
      expect(bound.filter((id, index) => id === bound[index - 1])).toEqual([]);
      if (parsed.drafts.some(({ type }) => type.startsWith('agent.') || type.startsWith('tool.')))
        expect(bound.at(-1)).toBe(memory.session);
      drafts.push(...parsed.drafts);
      at += slice.length;
    }
    expect(content(drafts)).toEqual(content(whole.drafts));
  });
});

describe('recorded turns', () => {
  test('a process that is killed while it asks leaves the request open and the turn unfinished', () => {
    const { evidence, turnOver, openRequests } = recorded('approve-killed');
    expect(turnOver).toBe(false);
    expect(evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_TURN_COMPLETED',
      sessionId: '01a1e09c-9883-7b61-a78d-0c2208633e87',
    });
    expect(openRequests).toMatchObject([{ message: { id: 0, method: 'item/commandExecution/requestApproval' } }]);
    expect(evidence.questions).toEqual(openRequests.map(({ question }) => question));
    expect(evidence.questions[0]?.action).toEqual({
      kind: 'command',
      command: "/bin/bash -lc 'echo ACC >> /srv/demo/side.txt'",
      cwd: '/srv/demo/w-as',
      environment_id: 'local',
    });
  });

  test('the digest of an action is the same when the next process asks again', () => {
    const before = recorded('approve-killed').openRequests[0];
    const lines = loadRecording('approve-resumed').toString('utf8').split('\n');
    const upTo = lines.findIndex((line) => line.includes('requestApproval'));
    const after = read(...lines.slice(0, upTo + 1)).openRequests[0];
    expect(after?.params['itemId']).not.toBe(before?.params['itemId']);
    expect(after?.question?.action).toEqual(before?.question?.action);
  });

  test('an answered request is open no more, and the turn succeeds', () => {
    const { evidence, turnOver, openRequests, drafts } = recorded('decline-resumed');
    expect({ turnOver, openRequests, success: evidence.success }).toEqual({
      turnOver: true,
      openRequests: [],
      success: true,
    });
    expect(dataOf(drafts, 'tool.call.completed')).toMatchObject([
      { name: 'shell', kind: 'command', status: 'declined' },
    ]);
  });

  test('a file change that is asked about shows the patch that began before it', () => {
    const lines = loadRecording('file-change-resumed').toString('utf8').split('\n');
    const { openRequests } = read(...lines.slice(0, lines.findIndex((line) => line.includes('requestApproval')) + 1));
    expect(openRequests[0]?.question?.action).toEqual({
      kind: 'file_change',
      changes: [{ path: '/var/srv/demo-loop-out.txt', kind: 'add', diff: 'hello\n' }],
    });
  });

  test('a forked start is bound to the fork, with its model', () => {
    const [bound] = dataOf(recorded('fork-resume').drafts, 'lifecycle.session.bound');
    expect(bound).toEqual({
      session_id: '01a1e070-3fa1-7aa3-a4e9-c6d0440de573',
      handle_type: 'session_id',
      model: expect.any(String),
    });
  });

  test('an unreachable service is a failure, with earlier attempts as warnings', () => {
    const { evidence, drafts, turnOver } = recorded('noserver-bounded');
    expect({ turnOver, failure: evidence.failure }).toEqual({
      turnOver: true,
      failure: { kind: 'turn', message: 'Connection failed: error sending request' },
    });
    expect(ofType(drafts, 'diagnostic.engine.error').filter(({ data }) => data.terminal)).toHaveLength(1);
  });

  test('a refused request of our own is remembered as a complaint', () => {
    expect(recorded('revert-unloaded').evidence.complaint).toEqual({
      kind: 'turn',
      message: 'thread not found: 01a1e076-4f6c-7ad0-bbb9-7cbf564d4771',
    });
  });
});

describe('events', () => {
  test('a whole plain turn becomes its RASP events', () => {
    const { drafts, evidence, turnOver } = read(
      json({ id: 1, result: { userAgent: 'x' } }),
      OPENED,
      json({ method: 'thread/started', params: { thread: { id: THREAD } } }),
      began(),
      note('item/agentMessage/delta', { itemId: 'm1', delta: 'Hel\n"lo"' }),
      item('completed', { type: 'agentMessage', id: 'm1', text: 'Hel\n"lo"' }),
      note('thread/tokenUsage/updated', {
        tokenUsage: {
          total: {
            totalTokens: 120,
            inputTokens: 100,
            cachedInputTokens: 10,
            outputTokens: 20,
            reasoningOutputTokens: 5,
          },
          last: {},
        },
      }),
      COMPLETED,
    );
    expect(brief(drafts)).toEqual([
      progress('response'),
      ['lifecycle.session.bound', { session_id: THREAD, handle_type: 'session_id', model: 'gpt-5.5' }],
      progress('response'),
      progress('thread/started'),
      progress('turn/started'),
      ['agent.message.delta', { text: 'Hel\n"lo"' }],
      ['agent.message.final', { text: 'Hel\n"lo"' }],
      [
        'agent.usage',
        {
          scope: 'thread',
          input_tokens: 100,
          cached_input_tokens: 10,
          output_tokens: 20,
          reasoning_tokens: 5,
          total_tokens: 120,
        },
      ],
      progress('turn/completed'),
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual([null, null, null, null, null, 'm1', 'm1', null, null]);
    expect(evidence).toMatchObject({
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      lastMessage: 'Hel\n"lo"',
      sessionId: THREAD,
    });
    expect(turnOver).toBe(true);
  });

  const command = {
    type: 'commandExecution',
    command: "/bin/bash -lc 'exit 3'",
    cwd: '/w',
    status: 'inProgress',
    aggregatedOutput: null,
    exitCode: null,
    durationMs: null,
  };
  const patch = {
    type: 'fileChange',
    status: 'completed',
    changes: [
      { path: '/w/a', kind: { type: 'add' }, diff: 'x' },
      { path: '/w/b', kind: { type: 'chmod' }, diff: '' },
    ],
  };
  const collab = {
    type: 'collabAgentToolCall',
    tool: 'spawnAgent',
    status: 'interrupted',
    prompt: 'help',
    agentsStates: { a: 1 },
  };

  test.each<[string, string, unknown[]]>([
    [
      'a command begins',
      item('started', command),
      [
        [
          'tool.call.started',
          { name: 'shell', kind: 'command', input: { command: "/bin/bash -lc 'exit 3'", cwd: '/w' } },
        ],
      ],
    ],
    [
      'a command prints',
      note('item/commandExecution/outputDelta', { itemId: 'i1', delta: 'out' }),
      [['tool.call.updated', { name: 'shell', kind: 'command', output: 'out' }]],
    ],
    [
      'a command ends',
      item('completed', { ...command, status: 'failed', aggregatedOutput: 'out\n', exitCode: 3, durationMs: 821 }),
      [
        [
          'tool.call.completed',
          { name: 'shell', kind: 'command', status: 'failed', exit_code: 3, duration_ms: 821, output: 'out\n' },
        ],
      ],
    ],
    [
      'a patch begins',
      item('started', patch),
      [['tool.call.started', { name: 'apply_patch', kind: 'file_change', input: { changes: patch.changes } }]],
    ],
    [
      'a patch grows',
      note('item/fileChange/patchUpdated', { itemId: 'i1', changes: [] }),
      [['tool.call.updated', { name: 'apply_patch', kind: 'file_change' }]],
    ],
    [
      'a patch is applied',
      item('completed', patch),
      [
        ['tool.call.completed', { name: 'apply_patch', kind: 'file_change', status: 'completed' }],
        ['artifact.file.changed', { path: '/w/a', kind: 'add' }],
        ['artifact.file.changed', { path: '/w/b', kind: 'unknown' }],
      ],
    ],
    [
      'a patch is declined',
      item('completed', { ...patch, status: 'declined' }),
      [['tool.call.completed', { name: 'apply_patch', kind: 'file_change', status: 'declined' }]],
    ],
    [
      'an MCP tool is called',
      item('started', { type: 'mcpToolCall', server: 's', tool: 't', arguments: { a: 1 } }),
      [['tool.call.started', { name: 's.t', kind: 'mcp', input: { a: 1 } }]],
    ],
    [
      'an MCP tool fails',
      item('completed', {
        type: 'mcpToolCall',
        server: 's',
        tool: 't',
        status: 'failed',
        result: null,
        error: { message: 'no' },
        durationMs: 4,
      }),
      [['tool.call.completed', { name: 's.t', kind: 'mcp', status: 'failed', error: 'no', duration_ms: 4 }]],
    ],
    [
      'a tool of the client ends',
      item('completed', {
        type: 'dynamicToolCall',
        tool: 'ask_human',
        status: 'completed',
        contentItems: [{ type: 'inputText', text: 'x' }],
      }),
      [
        [
          'tool.call.completed',
          { name: 'ask_human', kind: 'other', status: 'completed', output: [{ type: 'inputText', text: 'x' }] },
        ],
      ],
    ],
    [
      'a search ends, without a status',
      item('completed', { type: 'webSearch', query: 'q', results: null }),
      [['tool.call.completed', { name: 'web_search', kind: 'search', status: 'completed' }]],
    ],
    [
      'another agent is called',
      item('started', collab),
      [['tool.call.started', { name: 'spawnAgent', kind: 'agent', input: { tool: 'spawnAgent', prompt: 'help' } }]],
    ],
    [
      'another agent is interrupted',
      item('completed', collab),
      [['tool.call.completed', { name: 'spawnAgent', kind: 'agent', status: 'failed', output: { a: 1 } }]],
    ],
    [
      'the agent thinks',
      item('completed', { type: 'reasoning', summary: ['one', 'two'], content: ['raw'] }),
      [['agent.reasoning', { text: 'one\n\ntwo' }]],
    ],
    [
      'the agent thinks without a summary',
      item('completed', { type: 'reasoning', summary: [], content: ['raw'] }),
      [['agent.reasoning', { text: 'raw' }]],
    ],
    [
      'a reasoning item without text',
      item('completed', { type: 'reasoning', summary: [], content: [] }),
      [progress('item/completed: reasoning')],
    ],
    [
      'the agent plans',
      note('turn/plan/updated', {
        explanation: null,
        plan: [
          { step: 'a', status: 'completed' },
          { step: 'b', status: 'inProgress' },
        ],
      }),
      [
        [
          'agent.plan',
          {
            items: [
              { text: 'a', done: true },
              { text: 'b', done: false },
            ],
          },
        ],
      ],
    ],
    [
      'the agent writes a plan',
      item('completed', { type: 'plan', text: '# Plan' }),
      [['agent.plan', { items: [{ text: '# Plan', done: false }] }]],
    ],
    ['the user speaks', item('started', { type: 'userMessage', content: [] }), [progress('item/started: userMessage')]],
    [
      'an error is tried again',
      note('error', { error: { message: 'Reconnecting', codexErrorInfo: 'other' }, willRetry: true }),
      [['diagnostic.engine.warning', { message: 'Reconnecting', code: 'other' }]],
    ],
    [
      'an error is not tried again',
      note('error', {
        error: { message: 'gone', codexErrorInfo: { httpConnectionFailed: { httpStatusCode: 500 } } },
        willRetry: false,
      }),
      [
        [
          'diagnostic.engine.error',
          { message: 'gone', terminal: false, code: 'httpConnectionFailed', http_status: 500 },
        ],
      ],
    ],
    ['a warning', note('warning', { message: 'w' }), [['diagnostic.engine.warning', { message: 'w' }]]],
    [
      'a warning about the settings',
      note('configWarning', { summary: 's', details: 'd' }),
      [['diagnostic.engine.warning', { message: 's\nd' }]],
    ],
    [
      'a deprecation',
      note('deprecationNotice', { summary: 's', details: null }),
      [['diagnostic.engine.warning', { message: 's' }]],
    ],
    [
      'a refusal of a request',
      json({ error: { code: -32600, message: 'Not initialized' }, id: 1 }),
      [['diagnostic.engine.warning', { message: 'Not initialized' }]],
    ],
    ['a step without content', note('thread/status/changed', { status: {} }), [progress('thread/status/changed')]],
    ['a request', ask(0), [progress('item/tool/call')]],
  ])('%s', (_, line, expected) => {
    expect(JSON.parse(JSON.stringify(brief(readOne(line))))).toEqual(expected);
  });

  test('events of an item carry its id', () => {
    for (const line of [
      item('started', command),
      item('completed', patch),
      note('item/commandExecution/outputDelta', { itemId: 'i1', delta: '' }),
    ]) {
      expect(
        readOne(line)
          .map(({ itemId }) => itemId)
          .every((id) => id === 'i1'),
      ).toBe(true);
    }
  });
});

describe('how a turn ends', () => {
  test.each<[string, Json, 'auth' | 'turn']>([
    ['any other error', error('other'), 'turn'],
    ['a refused login', error({ httpConnectionFailed: { httpStatusCode: 401 } }), 'auth'],
    ['a forbidden call', error({ responseStreamConnectionFailed: { httpStatusCode: 403 } }), 'auth'],
    ['the word for a refused login', error('unauthorized'), 'auth'],
    ['a login that only the details speak of', error('other', 'stream failed', 'Incorrect API key provided'), 'auth'],
    ['a busy service', error({ responseTooManyFailedAttempts: { httpStatusCode: 429 } }, 'unauthorized'), 'turn'],
  ])('failed by %s', (_, reason, kind) => {
    const { evidence, turnOver, drafts } = read(OPENED, turn('failed', reason));
    const { message } = reason as { message: string };
    expect({ turnOver, success: evidence.success, failure: evidence.failure }).toEqual({
      turnOver: true,
      success: false,
      failure: { kind, message },
    });
    expect(drafts.at(-1)).toMatchObject({ type: 'diagnostic.engine.error', data: { message, terminal: true } });
  });

  test('interrupted: neither success nor failure', () => {
    const { evidence, turnOver, drafts } = read(OPENED, turn('interrupted'));
    expect(turnOver).toBe(true);
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'TURN_INTERRUPTED' });
    expect(drafts.at(-1)?.data).toEqual({ phase: 'turn/completed', reason: 'interrupted' });
  });

  test.each([
    ['a status that is not known', turn('paused'), 'turn.status'],
    ['a turn that still runs', turn('inProgress'), 'turn.status'],
    ['no turn at all', note('turn/completed'), 'turn'],
    ['a failure without words', turn('failed'), 'turn.error.message'],
  ])('%s is drift, but the turn has ended without success', (_, line, path) => {
    const { evidence, turnOver, drafts } = read(OPENED, line);
    expect({ turnOver, success: evidence.success }).toEqual({ turnOver: true, success: false });
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([
      { code: 'FIELD_DRIFT', event_type: 'turn/completed', path },
    ]);
  });

  test('errors on the way are no failure', () => {
    expect(
      read(OPENED, note('error', { error: { message: 'e' }, willRetry: false }), COMPLETED).evidence,
    ).toMatchObject({ success: true, failure: null });
  });

  test('only the last message of the agent counts', () => {
    const say = (text: string) => item('completed', { type: 'agentMessage', text });
    expect(
      read(
        OPENED,
        say('{"parley":{"done":true}}'),
        say('on it'),
        item('started', { type: 'agentMessage', text: 'half' }),
      ).evidence.lastMessage,
    ).toBe('on it');
  });

  test('a slice without an end is not over, whatever the one before it had', () => {
    const memory = newMemory();
    expect(readWith(memory, OPENED, COMPLETED).turnOver).toBe(true);
    expect(readWith(memory, began('u')).turnOver).toBe(false);
  });

  test('nothing of the items of a turn is remembered after it', () => {
    const memory = newMemory();
    readWith(
      memory,
      OPENED,
      item('started', { id: 'a', type: 'agentMessage', text: '' }),
      item('started', { id: 'b', type: 'commandExecution', command: 'ls' }),
    );
    expect([...memory.items.keys()]).toEqual([itemKey(THREAD, 'a'), itemKey(THREAD, 'b')]);
    readWith(memory, item('completed', { id: 'b', type: 'commandExecution', command: 'ls', status: 'completed' }));
    expect([...memory.items.keys()]).toEqual([itemKey(THREAD, 'a')]);
    readWith(memory, turn('interrupted'));
    expect(memory.items.size).toBe(0);
  });
});

describe('whose end it is', () => {
  const ofAnother = { phase: 'turn/completed', reason: 'of another turn' };

  test('the end of another turn does not end the one that is on, and forgets nothing of it', () => {
    const memory = newMemory();
    const { turnOver, evidence, drafts } = readWith(
      memory,
      OPENED,
      began('t'),
      item('started', { type: 'commandExecution', command: 'ls' }),
      turn('failed', error('other'), 'before'),
    );
    expect({ turnOver, on: memory.turn, items: [...memory.items.keys()] }).toEqual({
      turnOver: false,
      on: 't',
      items: [itemKey(THREAD, 'i1')],
    });
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'NO_TURN_COMPLETED' });
    expect(drafts.at(-1)?.data).toEqual(ofAnother);
    expect(readWith(memory, turn('completed', null, 'before'), COMPLETED)).toMatchObject({
      turnOver: true,
      evidence: { success: true },
    });
  });

  test('a repeated end is not the end of the next turn, before it starts and after', () => {
    const memory = newMemory();
    readWith(memory, OPENED, began('t'), COMPLETED);
    expect({ on: memory.turn, last: memory.lastTurn }).toEqual({ on: null, last: 't' });
    const { turnOver, evidence, drafts } = readWith(memory, COMPLETED, began('u'), COMPLETED);
    expect({ turnOver, success: evidence.success, on: memory.turn }).toEqual({
      turnOver: false,
      success: false,
      on: 'u',
    });
    expect(drafts.filter(({ data }) => JSON.stringify(data) === JSON.stringify(ofAnother))).toHaveLength(2);
    expect(readWith(memory, turn('interrupted', null, 'u'))).toMatchObject({
      turnOver: true,
      evidence: { unfinished: 'TURN_INTERRUPTED' },
    });
    expect(memory.lastTurn).toBe('u');
  });

  test('an end without a beginning counts, and so does one that names no turn', () => {
    const memory = newMemory();
    expect(readWith(memory, OPENED, began('t'), COMPLETED).turnOver).toBe(true);
    expect(readWith(memory, turn('completed', null, 'u')).turnOver).toBe(true);
    expect(readWith(memory, began('v'), note('turn/completed', { turn: { status: 'completed' } }))).toMatchObject({
      turnOver: true,
      evidence: { success: true },
    });
  });
});

describe('the greeting of another process', () => {
  const say = item('completed', { type: 'agentMessage', text: '{"parley":{"done":true}}' });
  const refused = json({ id: 3, error: { code: -32600, message: 'no' } });

  test('forgets questions, messages and items of the last process, but not the thread', () => {
    const memory = newMemory();
    const { turnOver, openRequests, evidence } = readWith(
      memory,
      OPENED,
      refused,
      began('t'),
      say,
      item('started', { type: 'commandExecution', command: 'ls' }),
      ask(0),
      GREETING,
    );
    expect({ turnOver, openRequests, on: memory.turn, items: memory.items.size }).toEqual({
      turnOver: false,
      openRequests: [],
      on: null,
      items: 0,
    });
    expect(evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_TURN_COMPLETED',
      questions: [],
      lastMessage: null,
      complaint: null,
    });
    expect(memory.session).toBe(THREAD);
  });

  test.each([
    ['a success', COMPLETED],
    ['a failure', turn('failed', error('other'))],
    ['an interrupted turn', turn('interrupted')],
  ])('forgets %s of the last one', (_, line) => {
    const { turnOver, evidence } = read(OPENED, began(), line, GREETING);
    expect({ turnOver, success: evidence.success, failure: evidence.failure, unfinished: evidence.unfinished }).toEqual(
      { turnOver: false, success: false, failure: null, unfinished: 'NO_TURN_COMPLETED' },
    );
  });

  test('the same ids are asked again by it, and answered anew', () => {
    expect(
      read(OPENED, ask(0), GREETING, ask(0, 'item/tool/call', { tool: 'ask_human', arguments: { prompt: 'Again?' } }))
        .openRequests,
    ).toMatchObject([{ message: { id: 0 }, question: { prompt: 'Again?' } }]);
  });

  test('is detected by both of its members; other responses forget nothing', () => {
    const answers: JsonObject[] = [{ userAgent: 'x' }, { codexHome: '/h' }, { userAgent: 1, codexHome: '/h' }, {}];
    for (const result of answers) expect(read(OPENED, ask(0), json({ id: 1, result })).openRequests).toHaveLength(1);
  });
});

describe('the followed thread', () => {
  test.each([
    ['an answer that opens a thread', OPENED],
    ['thread/started', json({ method: 'thread/started', params: { thread: { id: THREAD } } })],
    ['a turn', began()],
    ['a turn that drifts', note('turn/started')],
    ['an item', item('started', { type: 'userMessage' })],
    ['an item that drifts', item('started', { type: 'no such' })],
  ])('is bound by %s', (_, line) => {
    const memory = newMemory();
    expect(
      bound(
        readWith(memory, note('thread/status/changed', {}, OTHER), note('warning', { message: '' }, OTHER), line, line),
      ),
    ).toEqual([THREAD]);
    expect(memory.session).toBe(THREAD);
  });

  test('is not bound by what opens nothing', () => {
    const memory = newMemory();
    expect(
      bound(
        readWith(
          memory,
          note('thread/status/changed'),
          json({ id: 1, result: { thread: { id: '' } } }),
          json({ id: 1, result: { thread: { id: 5 } } }),
          'garbage',
        ),
      ),
    ).toEqual([]);
    expect(memory.session).toBeNull();
  });

  test('is named once in each turn, by the first line that names it', () => {
    const memory = newMemory(THREAD);
    const { drafts } = readWith(
      memory,
      json({ id: 9, result: {} }),
      note('turn/started', {}, OTHER),
      note('thread/status/changed'),
      COMPLETED,
    );
    expect(typesOf(drafts)).toEqual([
      'lifecycle.engine.progress',
      'lifecycle.engine.progress',
      'lifecycle.session.bound',
      'lifecycle.engine.progress',
      'lifecycle.engine.progress',
    ]);
    expect(drafts[2]).toMatchObject({ data: { session_id: THREAD }, sessionId: THREAD });
  });

  test('changes when an answer names another one, so that it shows', () => {
    const memory = newMemory(THREAD);
    const parsed = readWith(memory, json({ id: 2, result: { thread: { id: OTHER } } }), began('t', OTHER));
    expect(bound(parsed)).toEqual([OTHER]);
    expect({ session: memory.session, evidence: parsed.evidence.sessionId }).toEqual({
      session: OTHER,
      evidence: OTHER,
    });
    expect(parsed.drafts.at(-1)?.data).toEqual({ phase: 'turn/started' });
  });

  test('an id that is not a thread of Codex is reported and cannot be resumed', () => {
    const { evidence, drafts } = read(json({ id: 2, result: { thread: { id: '--help' } } }));
    expect(evidence.sessionId).toBeNull();
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_INVALID']);
  });

  test('an answer or a warning after a line of another thread is not taken for one of it', () => {
    const { drafts, openRequests } = read(
      OPENED,
      note('turn/started', {}, OTHER),
      json({ id: 9, result: {} }),
      note('turn/started', {}, OTHER),
      json({ method: 'currentTime/read', id: 3 }),
    );
    expect(brief(drafts.slice(2))).toEqual([
      progress('other thread: turn/started'),
      progress('response'),
      progress('other thread: turn/started'),
      progress('currentTime/read'),
    ]);
    expect(openRequests).toHaveLength(1);
  });

  test('lines of another thread only show that it works', () => {
    const memory = newMemory();
    const lines = [
      json({ method: 'thread/started', params: { thread: { id: OTHER } } }),
      note('item/started', { item: { id: 'x', type: 'fileChange', changes: [] } }, OTHER),
      note('item/completed', { item: { id: 'm', type: 'agentMessage', text: 'not mine' } }, OTHER),
      note('no/such', {}, OTHER),
      ask(7, 'item/commandExecution/requestApproval', { command: 'rm' }, OTHER),
      note('turn/completed', { turn: { status: 'completed' } }, OTHER),
    ];
    const { drafts, evidence, turnOver, openRequests, counts } = readWith(memory, OPENED, ...lines);
    expect(brief(drafts.slice(2))).toEqual(
      [
        'thread/started',
        'item/started',
        'item/completed',
        'no/such',
        'item/commandExecution/requestApproval',
        'turn/completed',
      ].map((method) => progress(`other thread: ${method}`)),
    );
    expect({ turnOver, lastMessage: evidence.lastMessage, items: memory.items.size }).toEqual({
      turnOver: false,
      lastMessage: null,
      items: 1,
    });
    // But it waits for an answer like any other.
    expect(openRequests.map(({ message }) => message.id)).toEqual([7]);
    expect(counts).toMatchObject({ units: 7, parsed: 7 });
    expect(memory.session).toBe(THREAD);
  });
});

test('a turn after a completed one is judged by itself', () => {
  const { turnOver, evidence } = read(
    OPENED,
    note('turn/started', { turn: { id: 'a' } }),
    note('turn/completed', { turn: { id: 'a', status: 'completed' } }),
    note('turn/started', { turn: { id: 'b' } }),
  );
  expect({ turnOver, success: evidence.success, unfinished: evidence.unfinished }).toEqual({
    turnOver: false,
    success: false,
    unfinished: 'NO_TURN_COMPLETED',
  });
});

// Of the same id, which the model chooses.
const patch = (diff: string) => [{ path: '/w/a', kind: { type: 'add' }, diff }];
const started = (diff: string, threadId = THREAD) =>
  note('item/started', { item: { id: 'call_1', type: 'fileChange', changes: patch(diff) } }, threadId);
const updated = (changes: Json, threadId = THREAD) =>
  note('item/fileChange/patchUpdated', { itemId: 'call_1', changes }, threadId);
const completed = (threadId: string) =>
  note('item/completed', { item: { id: 'call_1', type: 'fileChange', changes: [], status: 'completed' } }, threadId);
const asked = (threadId = THREAD) => ask(0, 'item/fileChange/requestApproval', { itemId: 'call_1' }, threadId);
const shown = (...lines: string[]) => read(OPENED, ...lines).openRequests[0]?.question?.action;
const seen = (diff: string) => ({ kind: 'file_change', changes: [{ path: '/w/a', kind: 'add', diff }] });
const UNSEEN = { kind: 'file_change', item_id: 'call_1', diff_seen: false };
const BOTH = [started('+EVIL'), started('+benign', OTHER)];

describe('requests', () => {
  test('are open in their order until they are resolved, by the very id', () => {
    const lines = [OPENED, ask(0), ask('0'), ask(1)];
    expect(read(...lines).openRequests.map(({ message }) => message.id)).toEqual([0, '0', 1]);
    expect(
      read(...lines, note('serverRequest/resolved', { requestId: 0 })).openRequests.map(({ message }) => message.id),
    ).toEqual(['0', 1]);
    expect(
      read(
        ...lines,
        note('serverRequest/resolved', { requestId: '0' }),
        note('serverRequest/resolved', { requestId: 5 }),
      ).openRequests.map(({ message }) => message.id),
    ).toEqual([0, 1]);
  });

  test('their questions are the questions of the turn; one without a question is open but asks nobody', () => {
    const { evidence, openRequests } = read(OPENED, ask(0), ask(1, 'item/tool/call', { tool: 'other' }), ask(2));
    expect(openRequests.map(({ question }) => question?.prompt ?? null)).toEqual(['Question 0?', null, 'Question 2?']);
    expect(evidence.questions.map(({ prompt }) => prompt)).toEqual(['Question 0?', 'Question 2?']);
  });

  test('that name no thread belong to the followed one', () => {
    expect(read(OPENED, json({ method: 'currentTime/read', id: 3, params: {} })).openRequests).toEqual([
      { message: requestMessage(3, 'currentTime/read', {}), params: {}, question: null },
    ]);
  });

  test('of a helper thread show the items it has started', () => {
    const changes = [{ path: '/w/a', kind: { type: 'add' }, diff: 'one' }];
    const started = note('item/started', { item: { id: 'x', type: 'fileChange', changes } }, OTHER);
    const asked = ask(7, 'item/fileChange/requestApproval', { itemId: 'x' }, OTHER);
    expect(read(OPENED, started, asked).openRequests[0]?.question?.action).toEqual({
      kind: 'file_change',
      changes: [{ path: '/w/a', kind: 'add', diff: 'one' }],
    });
    expect(
      read(
        OPENED,
        started,
        note('item/completed', { item: { id: 'x', type: 'fileChange', changes, status: 'completed' } }, OTHER),
        asked,
      ).openRequests[0]?.question?.action,
    ).toMatchObject({ diff_seen: false });
  });

  test('of a thread that the agent has called to help are open too, until they are resolved there', () => {
    const lines = [OPENED, ask(0), ask(1, 'item/commandExecution/requestApproval', { command: 'ls' }, OTHER)];
    const { openRequests, evidence } = read(...lines);
    expect(openRequests.map(({ message, params }) => [message.id, params['threadId']])).toEqual([
      [0, THREAD],
      [1, OTHER],
    ]);
    expect(evidence.questions.map(({ kind }) => kind)).toEqual(['open_text', 'approval']);
    expect(
      read(...lines, note('serverRequest/resolved', { requestId: 1 }, OTHER)).openRequests.map(
        ({ message }) => message.id,
      ),
    ).toEqual([0]);
  });

  test('that nobody knows are drift, but can still be refused', () => {
    const { openRequests, drafts } = read(OPENED, ask(4, 'item/new/thing', {}));
    expect(openRequests).toMatchObject([{ message: { id: 4, method: 'item/new/thing' }, question: null }]);
    expect(warningsOf(drafts)).toEqual(['UNKNOWN_EVENT_TYPE']);
  });

  test('of the slice before are not open in this one', () => {
    const memory = newMemory();
    expect(readWith(memory, OPENED, ask(0)).openRequests).toHaveLength(1);
    expect(readWith(memory, note('serverRequest/resolved', { requestId: 0 })).openRequests).toEqual([]);
  });

  test('about a patch of the slice before know it, as it was last', () => {
    const memory = newMemory();
    readWith(memory, OPENED, item('started', { type: 'fileChange', changes: move('old') }));
    readWith(memory, note('item/fileChange/patchUpdated', { itemId: 'i1', changes: move('new') }));
    const { openRequests } = readWith(memory, ask(0, 'item/fileChange/requestApproval', { itemId: 'i1' }));
    expect(openRequests[0]?.question?.action).toEqual({
      kind: 'file_change',
      changes: [{ path: '/w/a', kind: 'update', move_to: '/w/b', diff: 'new' }],
    });
  });

  describe('about a patch', () => {
    test('show that of the thread that asks, whatever another one calls its own', () => {
      for (const lines of [BOTH, BOTH.toReversed()]) {
        expect(shown(...lines, asked())).toEqual(seen('+EVIL'));
        expect(shown(...lines, asked(OTHER))).toEqual(seen('+benign'));
      }
      expect(shown(...BOTH, updated(patch('+more'), OTHER), asked())).toEqual(seen('+EVIL'));
      expect(shown(...BOTH, completed(OTHER), asked())).toEqual(seen('+EVIL'));
      expect(shown(...BOTH, completed(THREAD), asked(OTHER))).toEqual(seen('+benign'));
      expect(shown(started('+benign', OTHER), asked())).toEqual(UNSEEN);
    });

    test.each([THREAD, OTHER])('show it as it is now, also of a thread that was called to help: %s', (thread) => {
      expect(shown(started('old', thread), updated(patch('new'), thread), asked(thread))).toEqual(seen('new'));
    });

    test.each([THREAD, OTHER])('show nothing of one that cannot be read any more: %s', (thread) => {
      for (const changes of [
        null,
        'x',
        {},
        [5],
        [{ path: '/w/a' }],
        [{ kind: { type: 'add' }, diff: 'x' }],
      ] as Json[]) {
        expect(shown(started('old', thread), updated(changes, thread), asked(thread)), JSON.stringify(changes)).toEqual(
          UNSEEN,
        );
      }
      expect(
        shown(
          started('old', thread),
          note('item/fileChange/patchUpdated', { itemId: 'call_1' }, thread),
          asked(thread),
        ),
      ).toEqual(UNSEEN);
      // If it is shown again, it is emitted again.
      expect(shown(started('old', thread), updated('x', thread), updated(patch('new'), thread), asked(thread))).toEqual(
        seen('new'),
      );
    });

    test.each([THREAD, OTHER])('show nothing of one that began twice: %s', (thread) => {
      expect(shown(started('+EVIL', thread), started('+benign', thread), asked(thread))).toEqual(UNSEEN);
      expect(shown(started('one', thread), completed(thread), started('two', thread), asked(thread))).toEqual(
        seen('two'),
      );
    });
  });

  test('nested too deeply to be shown ask nobody', () => {
    const deep =
      `{"method":"item/permissions/requestApproval","id":0,"params":{"threadId":"${THREAD}",` +
      `"permissions":${'{"a":'.repeat(300)}1${'}'.repeat(300)}}}`;
    expect(read(OPENED, deep).openRequests).toMatchObject([
      { message: { id: 0, method: 'item/permissions/requestApproval' }, params: {}, question: null },
    ]);
  });
});

describe('lines that do not match', () => {
  test.each<[string, string, string, object]>([
    ['an unknown method', note('thread/new'), 'UNKNOWN_EVENT_TYPE', { event_type: 'thread/new' }],
    [
      'an unknown item',
      item('started', { type: 'newItem' }),
      'UNKNOWN_EVENT_TYPE',
      { event_type: 'item/started:newItem' },
    ],
    ['an object that is no message', '{"type":"turn.started"}', 'UNKNOWN_EVENT_TYPE', { event_type: '(none)' }],
    [
      'a notification without params',
      json({ method: 'item/started' }),
      'FIELD_DRIFT',
      { event_type: 'item/started', path: 'params' },
    ],
    ['params that are a list', json({ method: 'item/started', params: [] }), 'FIELD_DRIFT', { path: 'params' }],
    [
      'a turn without an id',
      note('turn/started', { turn: {} }),
      'FIELD_DRIFT',
      { event_type: 'turn/started', path: 'turn.id' },
    ],
    ['an item that is missing', note('item/completed'), 'FIELD_DRIFT', { path: 'item' }],
    [
      'an item without an id',
      note('item/started', { item: { type: 'plan', text: '' } }),
      'FIELD_DRIFT',
      { path: 'item.id' },
    ],
    ['an item without a type', item('started', {}), 'FIELD_DRIFT', { path: 'item.type' }],
    ['a message without text', item('completed', { type: 'agentMessage' }), 'FIELD_DRIFT', { path: 'item.text' }],
    [
      'thoughts that are no list',
      item('completed', { type: 'reasoning', summary: 'x' }),
      'FIELD_DRIFT',
      { path: 'item.summary' },
    ],
    [
      'a command with another status',
      item('completed', { type: 'commandExecution', command: '', status: 'new' }),
      'FIELD_DRIFT',
      { path: 'item.status' },
    ],
    [
      'changes without a path',
      item('started', { type: 'fileChange', changes: [{}] }),
      'FIELD_DRIFT',
      { path: 'item.changes' },
    ],
    [
      'a call without a server',
      item('started', { type: 'mcpToolCall', tool: 't' }),
      'FIELD_DRIFT',
      { path: 'item.server' },
    ],
    ['a call without a tool', item('started', { type: 'dynamicToolCall' }), 'FIELD_DRIFT', { path: 'item.tool' }],
    [
      'a piece that is no text',
      note('item/agentMessage/delta', { itemId: 'i', delta: 1 }),
      'FIELD_DRIFT',
      { path: 'delta' },
    ],
    ['a piece of nothing', note('item/agentMessage/delta', { delta: 'x' }), 'FIELD_DRIFT', { path: 'itemId' }],
    ['a plan without steps', note('turn/plan/updated', { plan: [{}] }), 'FIELD_DRIFT', { path: 'plan[].step' }],
    [
      'figures that are missing',
      note('thread/tokenUsage/updated', { tokenUsage: {} }),
      'FIELD_DRIFT',
      { path: 'tokenUsage.total' },
    ],
    ['an error without words', note('error', { error: {} }), 'FIELD_DRIFT', { path: 'error.message' }],
    ['a warning without words', note('configWarning', { message: 'x' }), 'FIELD_DRIFT', { path: 'summary' }],
    [
      'a resolution of nothing',
      note('serverRequest/resolved', { requestId: null }),
      'FIELD_DRIFT',
      { path: 'requestId' },
    ],
    ['an answer to nothing', json({ result: {} }), 'FIELD_DRIFT', { path: 'id' }],
    ['a refusal without words', json({ id: 1, error: 'x' }), 'FIELD_DRIFT', { path: 'error.message' }],
    ['a request without an id', note('item/tool/call', { tool: 'ask_human' }), 'FIELD_DRIFT', { path: 'id' }],
    ['text', 'thread panicked at …', 'LINE_UNDECODABLE', {}],
    ['a list', '[1]', 'LINE_UNDECODABLE', {}],
    [
      'deep nesting',
      '{"method":"item/started","params":{"item":{"id":"i","type":"mcpToolCall","server":"s","tool":"t",' +
        `"arguments":${'['.repeat(100_000)}${']'.repeat(100_000)}}}}`,
      'NESTING_TOO_DEEP',
      {},
    ],
  ])('%s is kept as raw text, and says why', (_, line, code, detail) => {
    const { drafts, counts } = read(OPENED, line, COMPLETED);
    expect(typesOf(drafts).slice(2)).toEqual(['raw.stdout', 'diagnostic.parser.warning', 'lifecycle.engine.progress']);
    expect(drafts[2]?.data).toEqual({ text: line });
    expect(drafts[3]?.data).toMatchObject({ code, ...detail });
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1 });
  });

  test('names that are members of every object are nobody', () => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      expect(warningsOf(readOne(note(name)))).toEqual(['UNKNOWN_EVENT_TYPE']);
      expect(warningsOf(readOne(item('started', { type: name })))).toEqual(['UNKNOWN_EVENT_TYPE']);
    }
  });

  test('a blank line is neither understood nor not', () => {
    expect(read(OPENED, '', COMPLETED).counts).toMatchObject({ units: 2, parsed: 2 });
  });

  test('an unterminated last line is read and reported', () => {
    const { turnOver, drafts } = parse(APP_SERVER, { stdout: `${OPENED}\n${COMPLETED}` });
    expect(turnOver).toBe(true);
    expect(warningsOf(drafts)).toEqual(['UNTERMINATED_LAST_LINE']);
  });
});
