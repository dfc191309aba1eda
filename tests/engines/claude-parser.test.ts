import { describe, expect, test } from 'vitest';
import { writeReceipt } from '../../src/ask/receipt.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { brief, dataOf, joinLines, ofType, parse, typesOf, warningsOf, type Parsed } from '../support/parse.js';

const SESSION = '11111111-1111-4111-8111-111111111111';
const OTHER = '22222222-2222-4222-8222-222222222222';

const line = (event: JsonObject): string => JSON.stringify({ session_id: SESSION, ...event });

const INIT = line({ type: 'system', subtype: 'init', model: 'claude-opus-5-5' });

function assistant(block: JsonObject, rest: JsonObject = {}): string {
  const message = { id: 'msg_1', role: 'assistant', model: 'claude-opus-5-5', content: [block] };
  return line({ type: 'assistant', message, parent_tool_use_id: null, uuid: 'u1', ...rest });
}

const say = (text: string, rest?: JsonObject): string => assistant({ type: 'text', text }, rest);
const call = (name: string, input: JsonObject = {}, id = 'toolu_1'): string =>
  assistant({ type: 'tool_use', id, name, input });

function answer(content: string | JsonObject[], rest: JsonObject = {}, block: JsonObject = {}): string {
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content, ...block };
  return line({ type: 'user', message: { role: 'user', content: [result] }, ...rest });
}

function result(rest: JsonObject = {}): string {
  return line({
    subtype: 'success',
    is_error: false,
    terminal_reason: 'completed',
    result: 'hi',
    type: 'result',
    ...rest,
  });
}

function read(...lines: readonly string[]): Parsed {
  return parse('claude', { stdout: joinLines(...lines) });
}

// The drafts of lines after the first, which binds the session.
function after(...lines: readonly string[]): Parsed['drafts'] {
  return read(INIT, ...lines).drafts.slice(1);
}

describe('events', () => {
  test('a whole plain turn becomes its RASP events, each of them certain', () => {
    const { drafts, counts } = read(INIT, say('hi'), result());
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id', model: 'claude-opus-5-5' }],
      ['agent.message.final', { text: 'hi' }],
      ['lifecycle.engine.progress', { phase: 'result', reason: 'completed' }],
    ]);
    expect(drafts.every(({ parser, confidence }) => parser === 'claude_ndjson' && confidence === 1)).toBe(true);
    expect(counts).toEqual({ profile: 'claude_ndjson', units: 3, parsed: 3, fallbacks: 0, warnings: {} });
  });

  test('a command becomes a tool call with both its ends and its exit code', () => {
    expect(
      brief(after(call('Bash', { command: 'false' }), answer('Exit code 1\noops', {}, { is_error: true }))),
    ).toEqual([
      ['tool.call.started', { name: 'Bash', kind: 'command', input: { command: 'false' } }],
      [
        'tool.call.completed',
        { name: 'Bash', kind: 'command', status: 'failed', exit_code: 1, output: 'Exit code 1\noops' },
      ],
    ]);
  });

  test('every kind of tool is distinguished', () => {
    const names = ['Bash', 'Write', 'NotebookEdit', 'Task', 'Agent', 'Grep', 'WebSearch', 'mcp__x__y', 'Read', 'New'];
    const drafts = after(...names.map((name, index) => call(name, {}, `toolu_${index}`)));
    expect(dataOf(drafts, 'tool.call.started').map(({ kind }) => kind)).toEqual([
      'command',
      'file_change',
      'file_change',
      'agent',
      'agent',
      'search',
      'search',
      'mcp',
      'other',
      'other',
    ]);
  });

  test.each([
    ['create', 'add'],
    ['update', 'update'],
  ])('a successful file tool of the kind %s is a changed file: %s', (type, kind) => {
    const change = { type, filePath: '/srv/work/a.txt' };
    const drafts = after(call('Write', { file_path: 'a.txt' }), answer('done', { tool_use_result: change }));
    expect(dataOf(drafts, 'artifact.file.changed')).toEqual([{ path: '/srv/work/a.txt', kind }]);
    const failed = after(call('Write', { file_path: 'a.txt' }), answer('no', {}, { is_error: true }));
    expect(ofType(failed, 'artifact.file.changed')).toEqual([]);
  });

  test('a call that was not permitted is declined, counted, and no question', () => {
    const denial = { tool_name: 'Bash', tool_use_id: 'toolu_1', tool_input: {} };
    const { drafts, evidence } = read(
      INIT,
      call('Bash', { command: 'touch a' }),
      line({ type: 'system', subtype: 'permission_denied', tool_name: 'Bash', tool_use_id: 'toolu_1' }),
      answer('needs approval', {}, { is_error: true }),
      result({ permission_denials: [denial, denial] }),
    );
    expect(dataOf(drafts, 'tool.call.completed')).toMatchObject([{ status: 'declined' }]);
    expect(dataOf(drafts, 'diagnostic.engine.warning')).toEqual([{ message: '2 tool calls were not permitted: Bash' }]);
    expect(evidence).toMatchObject({ success: true, questions: [] });
  });

  test('a call that a rule or a hook refused is declined, even without a line about it', () => {
    const meta = [{ id: 'toolu_1', permission_decision: { decision: 'reject', source: 'hook' } }];
    const drafts = after(call('Bash'), answer('no', { tool_result_meta: meta }, { is_error: true }));
    expect(dataOf(drafts, 'tool.call.completed')).toMatchObject([{ status: 'declined' }]);
  });

  test('what a subagent says is not what the agent says', () => {
    const { drafts, evidence } = read(
      INIT,
      say('from below', { parent_tool_use_id: 'toolu_9' }),
      assistant({ type: 'thinking', thinking: 'hm' }, { parent_tool_use_id: 'toolu_9' }),
    );
    expect(typesOf(drafts).slice(1)).toEqual(['lifecycle.engine.progress', 'lifecycle.engine.progress']);
    expect(evidence.lastMessage).toBeNull();
  });

  test('thinking becomes agent.reasoning, and its encrypted form is progress', () => {
    const drafts = after(assistant({ type: 'thinking', thinking: 'hm' }), assistant({ type: 'redacted_thinking' }));
    expect(brief(drafts)).toEqual([
      ['agent.reasoning', { text: 'hm' }],
      ['lifecycle.engine.progress', { phase: 'thinking' }],
    ]);
  });

  test('tokens and cost are those of the whole session, summed over its models', () => {
    const model = { inputTokens: 20, outputTokens: 10, cacheReadInputTokens: 5, cacheCreationInputTokens: 1 };
    const usage = { input_tokens: 1, output_tokens: 1 };
    const drafts = after(result({ usage, total_cost_usd: 0.5, modelUsage: { a: model, b: model } }));
    expect(dataOf(drafts, 'agent.usage')).toEqual([
      {
        scope: 'thread',
        input_tokens: 52,
        cached_input_tokens: 10,
        output_tokens: 20,
        reasoning_tokens: 0,
        total_tokens: 72,
        cost_usd: 0.5,
      },
    ]);
    expect(ofType(after(result({ usage, total_cost_usd: 0, modelUsage: {} })), 'agent.usage')).toEqual([]);
  });

  test('a usage limit is a warning with the time at which it resets', () => {
    const info = { status: 'rejected', resetsAt: 1794922094, rateLimitType: 'five_hour' };
    expect(
      dataOf(after(line({ type: 'rate_limit_event', rate_limit_info: info })), 'diagnostic.engine.warning'),
    ).toEqual([{ message: 'usage limit five_hour: rejected, resets at 2026-11-17T13:28:14.000Z' }]);
    for (const resetsAt of [1e300, -1, 'soon', null])
      expect(
        dataOf(
          after(line({ type: 'rate_limit_event', rate_limit_info: { ...info, resetsAt } })),
          'diagnostic.engine.warning',
        ),
      ).toEqual([{ message: 'usage limit five_hour: rejected' }]);
  });
});

describe('unknown lines', () => {
  test.each<[string, string]>([
    ['an unknown type', line({ type: 'news' })],
    ['an unknown kind of system line', line({ type: 'system', subtype: 'news' })],
    ['a system line without a kind', line({ type: 'system' })],
    ['an unknown block of the agent', assistant({ type: 'hologram' })],
    ['an unknown block of the user', line({ type: 'user', message: { content: [{ type: 'hologram' }] } })],
  ])('%s is raw with a warning', (_what, unknown) => {
    const drafts = after(unknown);
    expect(typesOf(drafts)).toEqual(['raw.stdout', 'diagnostic.parser.warning']);
    expect(warningsOf(drafts)).toEqual(['UNKNOWN_EVENT_TYPE']);
  });

  test.each<[string, JsonObject]>([
    ['message', { type: 'assistant' }],
    ['message.content', { type: 'assistant', message: { content: 'text' } }],
    ['message.content[]', { type: 'assistant', message: { content: [1] } }],
    ['message.content', { type: 'user', message: {} }],
    ['subtype', { type: 'result' }],
    ['is_error', { type: 'result', subtype: 'success', terminal_reason: 'completed' }],
    ['attempt', { type: 'system', subtype: 'api_retry' }],
    ['rate_limit_info.status', { type: 'rate_limit_event' }],
  ])('a line without %s has drifted', (path, event) => {
    expect(dataOf(after(line(event)), 'diagnostic.parser.warning')).toMatchObject([{ code: 'FIELD_DRIFT', path }]);
  });

  test('a message without content is progress, and every byte is covered', () => {
    for (const type of ['assistant', 'user'])
      expect(typesOf(after(line({ type, message: { content: [] } })))).toEqual(['lifecycle.engine.progress']);
  });
});

describe('the session', () => {
  test('only an init line names it: a result repeats an id that nobody knows', () => {
    const unknown = result({ subtype: 'error_during_execution', is_error: true, errors: ['No conversation found'] });
    expect(read(unknown)).toMatchObject({ evidence: { sessionId: null, success: false } });
    expect(read(say('hi'), result())).toMatchObject({ evidence: { sessionId: null } });
    expect(read(INIT)).toMatchObject({ evidence: { sessionId: SESSION } });
  });

  test('another id later is a warning and changes nothing', () => {
    const { drafts, evidence } = read(INIT, INIT.replace(SESSION, OTHER), result({ session_id: OTHER }));
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_CHANGED', 'SESSION_ID_CHANGED']);
    expect(evidence.sessionId).toBe(SESSION);
  });

  test('an id that is no UUID cannot be resumed: Claude Code would take it for a title', () => {
    const { drafts, evidence } = read(INIT.replace(SESSION, 'my session'));
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_INVALID']);
    expect(evidence.sessionId).toBeNull();
  });
});

function outcome(...lines: readonly string[]): { success: boolean; failure: string | null; unfinished: string | null } {
  const { success, failure, unfinished } = read(INIT, ...lines).evidence;
  return { success, failure: failure?.kind ?? null, unfinished };
}

describe('success', () => {
  test('is subtype success, no error, and completed', () => {
    expect(outcome(say('hi'), result())).toEqual({ success: true, failure: null, unfinished: null });
    for (const [rest, reason] of [
      [{ terminal_reason: 'tool_deferred' }, 'TOOL_DEFERRED'],
      [{ terminal_reason: 'something new' }, 'SOMETHING_NEW'],
      [{ terminal_reason: null }, 'NO_TERMINAL_REASON'],
      [{ terminal_reason: 'aborted_tools', is_error: true, subtype: 'error_during_execution' }, 'TURN_INTERRUPTED'],
    ] as const)
      expect(outcome(result(rest))).toEqual({ success: false, failure: null, unfinished: reason });
    expect(outcome(say('hi'))).toEqual({ success: false, failure: null, unfinished: 'NO_RESULT' });
  });

  test.each<[JsonObject, string]>([
    [{ api_error_status: 401 }, 'auth'],
    [{ api_error_status: 403 }, 'auth'],
    [{ api_error_status: 429 }, 'rate_limit'],
    [{ api_error_status: 400 }, 'request'],
    [{ api_error_status: 404 }, 'request'],
    [{ api_error_status: 408 }, 'service'],
    [{ api_error_status: 500 }, 'service'],
    [{ api_error_status: 529 }, 'service'],
    [{ api_error_status: null }, 'service'],
    [{ terminal_reason: 'max_turns', subtype: 'error_max_turns' }, 'limit'],
    [{ terminal_reason: 'budget_exhausted', subtype: 'error_max_budget_usd' }, 'limit'],
    [{ terminal_reason: 'completed', subtype: 'error_during_execution' }, 'turn'],
    [{ terminal_reason: 'completed', subtype: 'something_new', is_error: false }, 'turn'],
    [{ terminal_reason: 'tool_deferred_unavailable' }, 'turn'],
  ])('a result with an error fails as what it is: %j is %s', (rest, kind) => {
    expect(outcome(result({ is_error: true, terminal_reason: 'api_error', ...rest }))).toEqual({
      success: false,
      failure: kind,
      unfinished: null,
    });
  });

  test('without a status the name of the error decides, until the agent has said something again', () => {
    const refused = say('Not logged in', { error: 'authentication_failed' }).replace('claude-opus-5-5', '<synthetic>');
    const failed = result({ is_error: true, terminal_reason: 'api_error', api_error_status: null });
    expect(outcome(refused, failed).failure).toBe('auth');
    expect(outcome(refused, say('hi'), failed).failure).toBe('service');
  });

  test('an error after retries, before the agent printed anything, is a failure of the service', () => {
    const retry = line({ type: 'system', subtype: 'api_retry', attempt: 1, max_retries: 3, error: 'unknown' });
    const failed = result({ is_error: true, subtype: 'error_during_execution' });
    expect(outcome(retry, failed).failure).toBe('service');
    expect(outcome(retry, say('hi'), failed).failure).toBe('turn');
  });

  test('the last result decides, and work after it leaves the turn open', () => {
    const failed = result({ is_error: true, terminal_reason: 'api_error', api_error_status: 500 });
    expect(outcome(result(), failed).failure).toBe('service');
    expect(outcome(failed, INIT, say('hi'), result()).success).toBe(true);
    expect(outcome(result(), say('more')).unfinished).toBe('NO_RESULT');
  });

  test('words that Claude Code writes itself are not the agent’s', () => {
    const { drafts, evidence } = read(INIT, say('No response requested.').replace('claude-opus-5-5', '<synthetic>'));
    expect(ofType(drafts, 'agent.message.final')).toEqual([]);
    expect(evidence.lastMessage).toBeNull();
  });

  test('without a message the result is the last message', () => {
    expect(read(INIT, result({ result: '{"n":1}' })).evidence.lastMessage).toBe('{"n":1}');
    expect(read(INIT, say('hi'), result({ result: 'other' })).evidence.lastMessage).toBe('hi');
  });
});

const deferred = (use: JsonObject) => result({ terminal_reason: 'tool_deferred', deferred_tool_use: use });

describe('a deferred call', () => {
  const call = { id: 'toolu_1', name: 'Bash', input: { command: 'make', description: 'Builds' } };
  const INIT_IN = line({ type: 'system', subtype: 'init', cwd: '/work' });

  test('at the end of the turn is an approval with the folder in which it will run', () => {
    const { evidence } = read(INIT_IN, deferred(call));
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'TOOL_DEFERRED' });
    expect(evidence.questions).toMatchObject([
      { kind: 'approval', action: { kind: 'command', command: 'make', cwd: '/work' }, channel: 'native' },
    ]);
  });

  test('that is deferred again has no init line: the result confirms the session', () => {
    const again = result({ terminal_reason: null, stop_reason: 'tool_deferred', deferred_tool_use: call });
    const { evidence } = read(again);
    expect(evidence).toMatchObject({
      sessionId: SESSION,
      unfinished: 'TOOL_DEFERRED',
      questions: [{ action: { cwd: '' } }],
    });
    const failed = result({ is_error: true, subtype: 'error_during_execution', stop_reason: 'tool_deferred' });
    expect(read(failed).evidence).toMatchObject({ sessionId: null, success: false, questions: [] });
  });

  test('that is followed by more work waits no longer', () => {
    expect(read(INIT_IN, deferred(call), say('more')).evidence.questions).toEqual([]);
    expect(read(INIT_IN, deferred(call), result()).evidence).toMatchObject({ success: true, questions: [] });
  });

  test('that is not described is no question', () => {
    for (const use of [{}, { name: 'Bash' }, { name: 1, input: {} }, { name: 'Bash', input: 'make' }])
      expect(read(INIT_IN, deferred(use)).evidence.questions).toEqual([]);
  });
});

describe('questions', () => {
  const ASKED = { prompt: 'Which?', options: ['a', 'b'] };

  test('a successful call of our tool is a question, with its receipt', () => {
    const { evidence } = read(
      INIT,
      call('mcp__parley__ask_human', ASKED),
      answer([{ type: 'text', text: writeReceipt('nonce') }]),
      result(),
    );
    expect(evidence.questions).toMatchObject([{ kind: 'choose_one', prompt: 'Which?', channel: 'tool' }]);
    expect(evidence.receipts).toEqual(['nonce']);
  });

  test('a failed call, a tool of another server and a built-in question that nobody could answer are none', () => {
    for (const [name, block] of [
      ['mcp__parley__ask_human', { is_error: true }],
      ['mcp__other__ask_human', {}],
      ['AskUserQuestion', { is_error: true }],
    ] as const)
      expect(read(INIT, call(name, ASKED), answer('text', {}, block), result()).evidence.questions).toEqual([]);
  });
});
