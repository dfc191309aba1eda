import { describe, expect, test } from 'vitest';
import { readRequest } from '../../src/engines/codex-app-server/requests.js';
import { newMemory, type ReaderMemory } from '../../src/engines/turn-parser.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import type { Question } from '../../src/run/interaction.js';

const COMMAND = 'item/commandExecution/requestApproval';
const FILES = 'item/fileChange/requestApproval';
const PERMISSIONS = 'item/permissions/requestApproval';
const ELICITATION = 'mcpServer/elicitation/request';
const INPUT = 'item/tool/requestUserInput';
const CALL = 'item/tool/call';

const DECISIONS = ['approve', 'approve_for_session', 'decline', 'cancel'];
const RUN = { kind: 'command', itemId: 'i', command: "/bin/bash -lc 'touch zz'", cwd: '/w', commandActions: [{ type: 'unknown', command: 'touch zz' }] };

function ask(method: string, params: JsonObject, memory: ReaderMemory = newMemory()): Question | null {
  return readRequest(0, method, params, memory).question;
}

function remember(changes: Json): ReaderMemory {
  const memory = newMemory();
  memory.items.set('i', { id: 'i', type: 'fileChange', changes });
  return memory;
}

test('a request keeps its id, method and params', () => {
  expect(readRequest('7', 'no/such', { a: 1 }, newMemory())).toEqual({ id: '7', method: 'no/such', params: { a: 1 }, question: null });
});

describe('approvals', () => {
  test('offer four whole replies', () => {
    const question = ask(COMMAND, RUN);
    expect(question).toMatchObject({ kind: 'approval', channel: 'native' });
    expect(question?.options.map(({ value }) => value)).toEqual(DECISIONS.map((decision) => ({ decision })));
  });

  test.each<[string, JsonObject, JsonObject]>([
    ['a command', RUN, { kind: 'command', command: RUN.command, cwd: '/w' }],
    ['what is null is left out', { ...RUN, environmentId: null, additionalPermissions: null, networkApprovalContext: null, cwd: null }, { kind: 'command', command: RUN.command }],
    [
      'all that belongs to it',
      { ...RUN, environmentId: 'local', additionalPermissions: { network: { enabled: true }, fileSystem: null }, networkApprovalContext: { host: 'h', protocol: 'https' } },
      {
        kind: 'command', command: RUN.command, cwd: '/w', environment_id: 'local',
        additional_permissions: { network: { enabled: true }, fileSystem: null }, network: { host: 'h', protocol: 'https' },
      },
    ],
    ['text for a command that runs', { ...RUN, kind: 'writeStdin' }, { kind: 'writeStdin', command: RUN.command, cwd: '/w' }],
    ['an older server that names no kind', { command: 'ls' }, { kind: 'command', command: 'ls' }],
    ['the network alone', { networkApprovalContext: { host: 'h', protocol: 'https' } }, { kind: 'command', network: { host: 'h', protocol: 'https' } }],
  ])('are bound to exactly what is done: %s', (_, params, action) => {
    expect(ask(COMMAND, params)?.action).toEqual(action);
  });

  test('are not bound to what changes from one process to the next, nor to what the agent says about it', () => {
    const again = { ...RUN, itemId: 'other', turnId: 'other', threadId: 'other', startedAtMs: 9, reason: 'please', approvalId: 'x', proposedExecpolicyAmendment: ['touch'], availableDecisions: ['accept'], commandActions: [] };
    expect(ask(COMMAND, again)?.action).toEqual(ask(COMMAND, RUN)?.action);
  });

  test('of a command show the very command, the folder and the reason', () => {
    expect(ask(COMMAND, { ...RUN, reason: 'needs the network' })?.prompt).toBe("The agent wants to run a command:\n/bin/bash -lc 'touch zz'\nin /w\nIts reason: needs the network");
  });

  test('of a command do not show what the server made of it for people, which may be another', () => {
    const prompt = ask(COMMAND, RUN)?.prompt;
    for (const commandActions of [null, [], 5, [{ type: 'unknown', command: 'ls' }], [{ command: 'cat a' }, { command: 'wc' }]]) expect(ask(COMMAND, { ...RUN, commandActions })?.prompt).toBe(prompt);
  });

  test('of a command show what it is to be allowed beyond the sandbox', () => {
    expect(ask(COMMAND, { ...RUN, networkApprovalContext: { host: 'example.org' }, additionalPermissions: { network: { enabled: true } } })?.prompt).toMatch(/example\.org[^]*"enabled":true/);
  });

  test('of a patch show all of it, as it began', () => {
    const memory = remember([{ path: '/w/a', kind: { type: 'add' }, diff: 'x\n' }, { path: '/w/b', kind: { type: 'update', move_path: '/etc/c' }, diff: '@@' }, { path: '/w/d', kind: { type: 'delete' }, diff: '' }]);
    const question = ask(FILES, { itemId: 'i', reason: 'why', grantRoot: null }, memory);
    expect(question?.action).toEqual({
      kind: 'file_change',
      changes: [{ path: '/w/a', kind: 'add', diff: 'x\n' }, { path: '/w/b', kind: 'update', move_to: '/etc/c', diff: '@@' }, { path: '/w/d', kind: 'delete', diff: '' }],
    });
    expect(question?.prompt).toBe('The agent wants to change files:\nadd /w/a\nupdate /w/b -> /etc/c\ndelete /w/d\nIts reason: why');
    expect(ask(FILES, { itemId: 'i', grantRoot: '/w' }, memory)?.action).toMatchObject({ grant_root: '/w' });
    expect(ask(FILES, { itemId: 'i', grantRoot: '/w' }, memory)?.prompt).toContain('/w');
  });

  test.each<[string, ReaderMemory]>([
    ['was never seen', newMemory()],
    ['is empty', remember([])],
    ['has no diff', remember([{ path: '/w/a', kind: { type: 'add' } }])],
    ['has another shape', remember('x')],
  ])('of a patch that %s say so, and are bound to that one item', (_, memory) => {
    const question = ask(FILES, { itemId: 'i' }, memory);
    expect(question?.action).toEqual({ kind: 'file_change', item_id: 'i', diff_seen: false });
    expect(question?.prompt).toContain('cannot be shown');
  });

  test('of permissions name them and the folder', () => {
    const permissions = { network: { enabled: true }, fileSystem: null };
    expect(ask(PERMISSIONS, { permissions, cwd: '/w', reason: 'r', environmentId: 'local' })?.action).toEqual({ kind: 'permissions', permissions, cwd: '/w' });
    expect(ask(PERMISSIONS, { permissions, cwd: '/w', reason: 'r' })?.prompt).toBe('The agent wants more permissions:\n{"network":{"enabled":true},"fileSystem":null}\nin /w\nIts reason: r');
  });

  test('of an MCP tool name server, tool and what it is given', () => {
    const request = { serverName: 'desk', mode: 'form', message: 'Allow the desk MCP server to run tool "ask_human"?', _meta: { codex_approval_kind: 'mcp_tool_call', tool_params: { a: 1 } }, requestedSchema: { type: 'object', properties: {} } };
    expect(ask(ELICITATION, request)).toMatchObject({ kind: 'approval', action: { kind: 'mcp_tool_call', server: 'desk', tool: 'ask_human', params: { a: 1 } } });
    expect(ask(ELICITATION, request)?.prompt).toBe('Allow the desk MCP server to run tool "ask_human"?\nwith {"a":1}');
    expect(ask(ELICITATION, { ...request, _meta: { codex_approval_kind: 'mcp_tool_call', tool_name: 'other' } })?.action).toEqual({ kind: 'mcp_tool_call', server: 'desk', tool: 'other' });
  });

  test('of an MCP tool that is not named are bound to the words instead', () => {
    const params = { serverName: 'desk', mode: 'form', message: 'Delete it all?', _meta: { codex_approval_kind: 'mcp_tool_call' } };
    expect(ask(ELICITATION, params)?.action).toEqual({ kind: 'mcp_tool_call', server: 'desk', message: 'Delete it all?' });
  });

  test('of a page name its address', () => {
    const question = ask(ELICITATION, { serverName: 'desk', mode: 'url', message: 'Log in', url: 'https://example.org/x', _meta: null });
    expect(question).toMatchObject({ kind: 'approval', action: { kind: 'open_url', server: 'desk', url: 'https://example.org/x' } });
    expect(question?.prompt).toContain('https://example.org/x');
  });
});

describe('a form of an MCP server', () => {
  const REFUSAL = { type: 'object', required: ['decision'], properties: { decision: { enum: ['decline', 'cancel'] } }, additionalProperties: false };
  const schema = JSON.parse(`{"type":"object","required":["name"],"properties":{
    "name":{"type":"string","title":"Name","description":"as you sign","default":"me"},
    "color":{"type":"string","enum":["r","b"],"enumNames":["Red"]},
    "size":{"type":"string","description":"Size","oneOf":[{"const":"s","title":"Small"},{"const":"l"},{}]},
    "sure":{"type":"boolean","title":"Sure?"},
    "tags":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}},
    "count":{"type":"integer"},
    "odd":5,
    "__proto__":{"type":"string","title":"Proto"}}}`) as JsonObject;

  test.each(['form', 'openai/form', 'openaiForm'])('in the mode %s becomes a field for each of its properties', (mode) => {
    const question = ask(ELICITATION, { serverName: 's', mode, message: 'Who?', requestedSchema: schema, _meta: null });
    expect(JSON.parse(JSON.stringify(question))).toEqual({
      kind: 'fill_fields',
      prompt: 'Who?',
      options: [],
      fields: [
        { id: 'name', kind: 'open_text', prompt: 'Name: as you sign', options: [], default: 'me' },
        { id: 'color', kind: 'choose_one', prompt: 'color', options: [{ label: 'Red', value: 'r' }, { label: 'b', value: 'b' }] },
        { id: 'size', kind: 'choose_one', prompt: 'Size', options: [{ label: 'Small', value: 's' }, { label: 'l', value: 'l' }] },
        { id: 'sure', kind: 'confirm', prompt: 'Sure?', options: [] },
        { id: 'tags', kind: 'choose_one', prompt: 'tags', options: [{ label: 'X', value: ['x'] }] },
        { id: 'count', kind: 'open_text', prompt: 'count', options: [] },
        { id: 'odd', kind: 'open_text', prompt: 'odd', options: [] },
        { id: '__proto__', kind: 'open_text', prompt: 'Proto', options: [] },
      ],
      response_schema: { anyOf: [JSON.parse(JSON.stringify(schema)) as unknown, REFUSAL] },
      channel: 'native',
    });
  });
});

describe('questions of the agent', () => {
  const red = { label: 'Red', description: 'r' };

  test('one becomes one question, whose options answer with their label', () => {
    const question = ask(INPUT, { questions: [{ id: 'q1', header: 'Color', question: 'Which color?', options: [red] }] });
    expect(question).toMatchObject({ kind: 'choose_one', prompt: 'Which color?', options: [{ label: 'Red', value: 'Red', description: 'r' }], channel: 'native' });
    expect(question?.fields).toBeUndefined();
    expect(ask(INPUT, { questions: [{ id: 'q1', header: 'Color', question: '', options: null }] })).toMatchObject({ kind: 'open_text', prompt: 'Color', options: [] });
  });

  test('several become a field each, under their own ids', () => {
    expect(ask(INPUT, { questions: [{ id: 'a', question: 'A?', options: [red] }, { id: '__proto__', question: 'B?', options: null }] })).toMatchObject({
      kind: 'fill_fields',
      prompt: '1. A?\n2. B?',
      fields: [{ id: 'a', kind: 'choose_one', prompt: 'A?' }, { id: '__proto__', kind: 'open_text', prompt: 'B?', options: [] }],
    });
  });

  test('by the question tool are read as everywhere', () => {
    expect(ask(CALL, { tool: 'ask_human', arguments: { prompt: 'Which?', options: ['x'] } })).toMatchObject({ kind: 'choose_one', prompt: 'Which?', options: [{ label: 'x', value: 'x' }], channel: 'native' });
    expect(ask(CALL, { tool: 'ask_human', arguments: { kind: 'approval', prompt: 'Approve?' } })?.kind).toBe('open_text');
    expect(ask(CALL, { tool: 'ask_human' })).toMatchObject({ kind: 'open_text' });
  });
});

describe('nobody is asked', () => {
  test.each<[string, string, JsonObject]>([
    ['a command that is not named', COMMAND, { cwd: '/w', reason: 'trust me' }],
    ['a command that is no text', COMMAND, { command: ['rm'] }],
    ['a patch of no item', FILES, {}],
    ['permissions that are none', PERMISSIONS, { permissions: 'all' }],
    ['an elicitation of nobody', ELICITATION, { mode: 'url', url: 'https://example.org' }],
    ['an elicitation of another mode', ELICITATION, { serverName: 's', mode: 'openai/userVerification', title: 't', challenge: 'c' }],
    ['a page without an address', ELICITATION, { serverName: 's', mode: 'url' }],
    ['a form without a schema', ELICITATION, { serverName: 's', mode: 'form', message: 'm' }],
    ['a form of another type', ELICITATION, { serverName: 's', mode: 'form', message: 'm', requestedSchema: { type: 'array', properties: {} } }],
    ['another kind of approval that looks like a form', ELICITATION, { serverName: 's', mode: 'form', message: 'm', requestedSchema: { type: 'object', properties: {} }, _meta: { codex_approval_kind: 'tool_suggestion' } }],
    ['no questions', INPUT, { questions: [] }],
    ['questions that are no list', INPUT, { questions: 'x' }],
    ['questions without an id', INPUT, { questions: [{ id: 'a', question: 'A?' }, { question: 'B?' }] }],
    ['questions of the same id', INPUT, { questions: [{ id: 'a', question: 'A?' }, { id: 'a', question: 'B?' }] }],
    ['another tool', CALL, { tool: 'ask_human2', arguments: { prompt: 'x' } }],
    ['the time', 'currentTime/read', {}],
    ['a login', 'account/chatgptAuthTokens/refresh', {}],
    ['an approval of the old kind', 'execCommandApproval', { command: ['ls'], cwd: '/w' }],
    ['a method that is a member of every object', 'constructor', {}],
  ])('about %s', (_, method, params) => {
    expect(ask(method, params)).toBeNull();
  });
});
