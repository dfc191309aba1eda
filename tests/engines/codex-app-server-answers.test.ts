import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { actionDigest } from '../../src/engines/action-digest.js';
import { buildAnswer, carriesOver, describeAnswer } from '../../src/engines/codex-app-server/answers.js';
import { readRequest } from '../../src/engines/codex-app-server/requests.js';
import type { NativeRequest } from '../../src/engines/native-request.js';
import { newMemory } from '../../src/engines/turn-parser.js';
import { InvariantError } from '../../src/kernel/invariant.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { requestMessage } from '../support/request-message.js';
import { runs } from '../support/runs.js';

function request(method: string, params: JsonObject): NativeRequest {
  const read = readRequest(requestMessage(0, method, params), newMemory());
  expect(read.question).not.toBeNull();
  return read;
}

// The note that nobody has interrupted it, despite the message of Codex.
const CUT_OFF = '(Your turn was cut off only because it waited long for this answer; nobody wanted you to stop.)';
const parsed = (text: string) => JSON.parse(text) as JsonObject;

const COMMAND = request('item/commandExecution/requestApproval', {
  command: 'ls',
  cwd: '/w',
  proposedExecpolicyAmendment: ['ls'],
  availableDecisions: ['accept', { acceptWithExecpolicyAmendment: {} }],
});
const FILES = request('item/fileChange/requestApproval', { itemId: 'i' });
const ASKED = { network: { enabled: true }, fileSystem: null };
const PERMISSIONS = request('item/permissions/requestApproval', { permissions: ASKED, cwd: '/w' });
const PAGE = request('mcpServer/elicitation/request', {
  serverName: 's',
  mode: 'url',
  message: 'm',
  url: 'https://example.org',
});
const tool = (persist?: Json) =>
  request('mcpServer/elicitation/request', {
    serverName: 's',
    mode: 'form',
    message: 'm',
    _meta: { codex_approval_kind: 'mcp_tool_call', ...(persist === undefined ? {} : { persist }) },
  });
const form = (properties: JsonObject) =>
  request('mcpServer/elicitation/request', {
    serverName: 's',
    mode: 'form',
    message: 'm',
    requestedSchema: { type: 'object', properties },
  });
const input = (...ids: string[]) =>
  request('item/tool/requestUserInput', { questions: ids.map((id) => ({ id, question: `${id}?`, options: null })) });
const ASK = request('item/tool/call', { tool: 'ask_human', arguments: { prompt: 'Which?' } });

const APPROVALS = { COMMAND, FILES, PERMISSIONS, PAGE, TOOL: tool() };

describe('a decision', () => {
  const yes = { action: 'accept', content: {}, _meta: null };

  test.each<[string, NativeRequest, [Json, Json, Json, Json]]>([
    [
      'a command',
      COMMAND,
      [{ decision: 'accept' }, { decision: 'acceptForSession' }, { decision: 'decline' }, { decision: 'cancel' }],
    ],
    [
      'a patch',
      FILES,
      [{ decision: 'accept' }, { decision: 'acceptForSession' }, { decision: 'decline' }, { decision: 'cancel' }],
    ],
    [
      'permissions',
      PERMISSIONS,
      [
        { permissions: { network: { enabled: true } }, scope: 'turn' },
        { permissions: { network: { enabled: true } }, scope: 'session' },
        { permissions: {}, scope: 'turn' },
        { permissions: {}, scope: 'turn' },
      ],
    ],
    [
      'an MCP tool',
      tool(),
      [yes, yes, { action: 'decline', content: null, _meta: null }, { action: 'cancel', content: null, _meta: null }],
    ],
    [
      'an MCP tool, where a session is offered',
      tool('session'),
      [
        yes,
        { ...yes, _meta: { persist: 'session' } },
        { action: 'decline', content: null, _meta: null },
        { action: 'cancel', content: null, _meta: null },
      ],
    ],
    [
      'an MCP tool, where more is offered',
      tool(['session', 'always']),
      [
        yes,
        { ...yes, _meta: { persist: 'session' } },
        { action: 'decline', content: null, _meta: null },
        { action: 'cancel', content: null, _meta: null },
      ],
    ],
    [
      'an MCP tool, where only for ever is offered',
      tool('always'),
      [yes, yes, { action: 'decline', content: null, _meta: null }, { action: 'cancel', content: null, _meta: null }],
    ],
    [
      'a page',
      PAGE,
      [
        { action: 'accept', content: null, _meta: null },
        { action: 'accept', content: null, _meta: null },
        { action: 'decline', content: null, _meta: null },
        { action: 'cancel', content: null, _meta: null },
      ],
    ],
  ])('about %s has the form that the server understands', (_, asked, answers) => {
    const decisions = ['approve', 'approve_for_session', 'decline', 'cancel'];
    expect(decisions.map((decision) => buildAnswer(asked, { decision, note: 'x' }))).toEqual(answers);
  });

  const HOSTILE: Json[] = [
    null,
    true,
    false,
    0,
    1,
    '',
    'approve',
    'yes',
    [],
    ['approve'],
    [{ decision: 'approve' }],
    {},
    { decision: true },
    { decision: null },
    { decision: 'APPROVE' },
    { decision: 'accept' },
    { decision: ' approve' },
    Object.assign(['x'], { decision: 'approve' }),
    Object.create({ decision: 'approve' }) as JsonObject,
    { decision: ['approve'] },
    { decision: { decision: 'approve' } },
    { decision: 'acceptWithExecpolicyAmendment' },
    { Decision: 'approve' },
    { decision: 'constructor' },
    parsed('{"__proto__":{"decision":"approve"}}'),
  ];

  test.each(Object.entries(APPROVALS))('nothing else decides about %s', (_, asked) => {
    for (const response of HOSTILE)
      expect(() => buildAnswer(asked, response), JSON.stringify(response)).toThrow(InvariantError);
    for (const response of HOSTILE)
      expect(() => describeAnswer({ kind: 'approval', prompt: 'p' }, response), JSON.stringify(response)).toThrow(
        InvariantError,
      );
  });

  test('no value but the two words of consent ever approves anything', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.jsonValue(), fc.record({ decision: fc.jsonValue() })),
        fc.constantFrom(...Object.values(APPROVALS)),
        (response, asked) => {
          let answer: JsonObject | null = null;
          try {
            answer = buildAnswer(asked, response as Json);
          } catch (error) {
            expect(error).toBeInstanceOf(InvariantError);
          }
          const { decision } = (response ?? {}) as { decision?: unknown };
          if (decision !== 'approve' && decision !== 'approve_for_session')
            expect(JSON.stringify(answer)).not.toMatch(/accept|enabled/);
        },
      ),
      { numRuns: runs(500), seed: 20261115 },
    );
  });
});

describe('a form', () => {
  const two = form({ a: { type: 'string' }, b: { type: 'string' } });

  test.each<[string, NativeRequest, Json, Json]>([
    ['an object is its content', two, { a: 'x', b: 1 }, { action: 'accept', content: { a: 'x', b: 1 }, _meta: null }],
    ['a refusal', two, { decision: 'decline' }, { action: 'decline', content: null, _meta: null }],
    ['a refusal that also stops', two, { decision: 'cancel' }, { action: 'cancel', content: null, _meta: null }],
    [
      'a field of that name beside another',
      form({ decision: { type: 'string' }, b: { type: 'boolean' } }),
      { decision: 'decline', b: true },
      { action: 'accept', content: { decision: 'decline', b: true }, _meta: null },
    ],
    [
      'another word in a field of that name',
      form({ decision: { type: 'string' } }),
      { decision: 'approve' },
      { action: 'accept', content: { decision: 'approve' }, _meta: null },
    ],
    [
      'a number that was typed is a number',
      form({ a: { type: 'number' }, b: { type: 'integer' }, c: { type: 'string' } }),
      { a: '-1.5', b: '7', c: '7' },
      { action: 'accept', content: { a: -1.5, b: 7, c: '7' }, _meta: null },
    ],
    [
      'a number is itself',
      form({ a: { type: 'number' } }),
      { a: 0.5 },
      { action: 'accept', content: { a: 0.5 }, _meta: null },
    ],
  ])('%s', (_, asked, response, answer) => {
    expect(buildAnswer(asked, response)).toEqual(answer);
  });

  // Like an automatic decision, or the answer of a program that never saw the form.
  test.each<Json>(['x', '', true, false, 0, 1, null, [], ['x'], [{ a: true }]])(
    '%j fills no form, not even one of a single field',
    (response) => {
      const forms = [
        two,
        form({}),
        form({ a: { type: 'string' } }),
        form({ confirm: { type: 'boolean' } }),
        form({ a: { type: 'integer' } }),
      ];
      for (const asked of forms)
        expect(buildAnswer(asked, response)).toEqual({ action: 'decline', content: null, _meta: null });
    },
  );

  test('a field may have any name', () => {
    const { content } = buildAnswer(form(parsed('{"__proto__":{"type":"string"}}')), parsed('{"__proto__":"x"}')) as {
      content: JsonObject;
    };
    expect(JSON.stringify(content)).toBe('{"__proto__":"x"}');
    expect(Object.getPrototypeOf(content)).toBe(Object.prototype);
  });
});

describe('answers to questions of the agent', () => {
  test.each<[string, NativeRequest, Json, string]>([
    ['a text', input('q1'), 'Blue', '{"q1":{"answers":["Blue"]}}'],
    ['several texts', input('q1'), ['Red', 'Blue'], '{"q1":{"answers":["Red","Blue"]}}'],
    ['by its id', input('q1'), { q1: 'Blue' }, '{"q1":{"answers":["Blue"]}}'],
    ['several by its id', input('q1'), { q1: ['Red', 5] }, '{"q1":{"answers":["Red","5"]}}'],
    ['an answer that is not text', input('q1'), { color: 'Blue' }, '{"q1":{"answers":["{\\"color\\":\\"Blue\\"}"]}}'],
    ['nothing', input('q1'), null, '{"q1":{"answers":["null"]}}'],
    ['each by its id', input('a', 'b'), { a: 'x', b: true }, '{"a":{"answers":["x"]},"b":{"answers":["true"]}}'],
    ['one of two', input('a', 'b'), { b: 'y', c: 'z' }, '{"a":{"answers":[]},"b":{"answers":["y"]}}'],
    ['a text to both', input('a', 'b'), 'whatever', '{"a":{"answers":["whatever"]},"b":{"answers":["whatever"]}}'],
    [
      'ids that every object has',
      input('__proto__', 'constructor'),
      {},
      '{"__proto__":{"answers":["{}"]},"constructor":{"answers":["{}"]}}',
    ],
    [
      'ids that every object has, answered',
      input('__proto__', 'constructor'),
      parsed('{"__proto__":"x"}'),
      '{"__proto__":{"answers":["x"]},"constructor":{"answers":[]}}',
    ],
  ])('%s', (_, asked, response, answers) => {
    expect(JSON.stringify(buildAnswer(asked, response))).toBe(`{"answers":${answers}}`);
  });

  test.each<[Json, string]>([
    ['Postgres', 'Postgres'],
    [{ a: 1 }, '{"a":1}'],
    [['x'], '["x"]'],
    [null, 'null'],
    [true, 'true'],
    ['', ''],
  ])('by the question tool: %j', (response, text) => {
    expect(buildAnswer(ASK, response)).toEqual({ contentItems: [{ type: 'inputText', text }], success: true });
  });

  test('any JSON is an answer, however deep', () => {
    const deep = parsed(`{"a":${'['.repeat(50_000)}${']'.repeat(50_000)}}`);
    for (const asked of [ASK, input('q1'), input('a', 'b')]) {
      expect(() => JSON.stringify(buildAnswer(asked, deep))).not.toThrow();
      fc.assert(
        fc.property(fc.jsonValue(), (response) => void JSON.stringify(buildAnswer(asked, response as Json))),
        { numRuns: runs(200), seed: 20261115 },
      );
    }
  });
});

test('a request that was not a question has no answer', () => {
  expect(() => buildAnswer(readRequest(requestMessage(0, 'currentTime/read', {}), newMemory()), 'x')).toThrow(
    InvariantError,
  );
  expect(() => buildAnswer({ ...COMMAND, question: null }, { decision: 'approve' })).toThrow(InvariantError);
  expect(() =>
    buildAnswer({ ...COMMAND, message: requestMessage(0, 'item/new', {}) }, { decision: 'approve' }),
  ).toThrow(InvariantError);
});

describe('messages for an agent whose process has exited', () => {
  const action = { kind: 'command', command: 'ls', cwd: '/w' };
  const approval = { kind: 'approval', prompt: 'The agent wants to run ls', action };
  const said = JSON.stringify(action);

  test.each<[JsonObject, Json, string]>([
    [
      approval,
      { decision: 'approve' },
      `The person approved this action: ${said}\nDo it now exactly as it was, then go on.`,
    ],
    [
      approval,
      { decision: 'approve_for_session', note: 'careful' },
      `The person approved this action: ${said}\nTheir note: careful\nDo it now exactly as it was, then go on.`,
    ],
    [
      approval,
      { decision: 'decline', note: 'use cat' },
      `The person declined this action: ${said}\nTheir note: use cat\nDo not do it. Go on without it.`,
    ],
    [
      approval,
      { decision: 'cancel', note: 5 },
      `The person declined this action: ${said}\nDo not do it. End your turn now.`,
    ],
    [
      { kind: 'approval', prompt: 'Open it?' },
      { decision: 'decline' },
      'The person declined this action: Open it?\nDo not do it. Go on without it.',
    ],
    [{ kind: 'choose_one', prompt: 'Which?' }, 'Postgres', 'You asked: Which?\nThe answer: Postgres'],
    [{ kind: 'fill_fields', prompt: 'Both?' }, { a: 1 }, 'You asked: Both?\nThe answer: {"a":1}'],
    [{ kind: 'open_text', prompt: 'p' }, { decision: 'approve' }, 'You asked: p\nThe answer: {"decision":"approve"}'],
    [{}, null, 'You asked: \nThe answer: null'],
  ])('%j, %j', (question, response, text) => {
    expect(describeAnswer(question, response)).toBe(`${text}\n${CUT_OFF}`);
  });
});

describe('the digest of an action', () => {
  const action = { kind: 'command', command: 'ls', cwd: '/w' };

  test('is the same in any order, and another for any other action or sandbox', () => {
    const digest = actionDigest(action, 'read-only');
    expect(digest).toMatch(/^[0-9a-f]{64}$/);
    expect(actionDigest({ cwd: '/w', command: 'ls', kind: 'command' }, 'read-only')).toBe(digest);
    const others = [
      actionDigest(action, 'workspace-write'),
      actionDigest({ ...action, command: 'ls ' }, 'read-only'),
      actionDigest({ ...action, cwd: '/' }, 'read-only'),
      actionDigest(parsed('{"kind":"command","command":"ls","cwd":"/w","__proto__":{"a":1}}'), 'read-only'),
    ];
    expect(new Set([digest, ...others]).size).toBe(5);
  });

  test('is the one that was agreed: sha256 of the canonical text', () => {
    expect(actionDigest({ b: 1, a: [2] }, 's')).toBe(
      '2da53b35d5de6e99448e4e84be0a6bc71d05040bcd1fff002ae5c5174d619b79',
    );
  });
});

describe('a decision is used in another process', () => {
  const changes = [{ path: '/w/a', kind: 'add', diff: 'x' }];

  test.each<[string, boolean, JsonObject]>([
    ['about a command', true, { kind: 'command', command: 'ls', cwd: '/w' }],
    ['about a change that was seen', true, { kind: 'file_change', changes }],
    ['about permissions', true, { kind: 'permissions', permissions: { network: { enabled: true } } }],
    ['about a change that was not seen', false, { kind: 'file_change', item_id: 'i', diff_seen: false }],
    ['about the network alone', false, { kind: 'command', network: { host: 'h' } }],
    ['about input that is typed into a program', false, { kind: 'writeStdin', command: 'ls' }],
    ['about another kind of command', false, { kind: 'unifiedExec', command: 'ls' }],
    ['about a tool of an MCP server', false, { kind: 'mcp_tool_call', server: 's', tool: 't', params: {} }],
    [
      'about such a tool that looks like a command',
      false,
      { kind: 'mcp_tool_call', server: 's', command: 'ls', changes, permissions: {} },
    ],
    ['about a page', false, { kind: 'open_url', server: 's', url: 'https://example.org' }],
    ['about nothing', false, {}],
  ])('%s: %j', (_, isUsed, action) => {
    expect(carriesOver(action)).toBe(isUsed);
  });

  test('as in the requests themselves', () => {
    expect(
      Object.entries(APPROVALS)
        .filter(([, { question }]) => carriesOver(question?.action ?? {}))
        .map(([name]) => name),
    ).toEqual(['COMMAND', 'PERMISSIONS']);
  });
});
