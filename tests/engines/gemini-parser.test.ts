import { describe, expect, test } from 'vitest';
import { writeReceipt } from '../../src/ask/receipt.js';
import { brief, dataOf, joinLines, ofType, parse, typesOf, warningsOf, type Parsed } from '../support/parse.js';

const SESSION = '58189485-f74d-4e81-8b6e-1f4b90158a5a';
const STARTED_AT = '2026-11-15T18:11:08.889Z';
const INIT = `{"type":"init","timestamp":"${STARTED_AT}","session_id":"${SESSION}","model":"gemini-2.5-flash"}`;
const USER = '{"type":"message","timestamp":"2026-11-15T18:11:08.892Z","role":"user","content":"say hello [plain]"}';
const STATS =
  '{"total_tokens":30,"input_tokens":20,"output_tokens":10,"cached":0,"input":20,"duration_ms":86,' +
  '"tool_calls":0,"models":{"fake-gemini":{"total_tokens":30,"input_tokens":20,"output_tokens":10,' +
  '"cached":0,"input":20}}}';
const RESULT = `{"type":"result","timestamp":"2026-11-15T18:11:08.975Z","status":"success","stats":${STATS}}`;
const STDERR = joinLines(
  'Warning: 256-color support not detected. Using a terminal with at least 256-color support is recommended for a ' +
    'better visual experience.',
  'Ripgrep is not available. Falling back to GrepTool.',
);

function delta(content: string): string {
  return JSON.stringify({
    type: 'message',
    timestamp: '2026-11-15T18:11:08.947Z',
    role: 'assistant',
    content,
    delta: true,
  });
}

function toolUse(name: string, id: string, parameters: unknown): string {
  return JSON.stringify({
    type: 'tool_use',
    timestamp: '2026-11-15T18:13:13.295Z',
    tool_name: name,
    tool_id: id,
    parameters,
  });
}

function toolResult(id: string, status: string, rest: object = {}): string {
  return JSON.stringify({ type: 'tool_result', timestamp: '2026-11-15T18:13:13.518Z', tool_id: id, status, ...rest });
}

function failed(message: string): string {
  return JSON.stringify({
    type: 'result',
    timestamp: '2026-11-15T18:17:15.938Z',
    status: 'error',
    error: { type: 'unknown', message },
    stats: { total_tokens: 0 },
  });
}

function finals(parsed: Parsed): [string, number][] {
  return ofType(parsed.drafts, 'agent.message.final').map(({ data, confidence }) => [data.text, confidence]);
}

function errorObject(error: object): string {
  return `${JSON.stringify({ session_id: SESSION, error }, null, 2)}\n`;
}

function read(...lines: readonly string[]): Parsed {
  return parse('gemini', { stdout: joinLines(...lines) });
}

describe('stream-json events', () => {
  test('a whole plain turn becomes its RASP events', () => {
    const { drafts, counts } = read(INIT, USER, delta('Hello '), delta('from the fake model.'), RESULT);
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id', model: 'gemini-2.5-flash' }],
      ['lifecycle.engine.progress', { phase: 'prompt.echo' }],
      ['agent.message.delta', { text: 'Hello ' }],
      ['agent.message.delta', { text: 'from the fake model.' }],
      ['agent.message.final', { text: 'Hello from the fake model.' }],
      [
        'agent.usage',
        {
          scope: 'turn',
          input_tokens: 20,
          cached_input_tokens: 0,
          output_tokens: 10,
          total_tokens: 30,
          duration_ms: 86,
        },
      ],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual([null, null, 'message_1', 'message_1', 'message_1', null]);
    expect(drafts.map(({ confidence }) => confidence)).toEqual([1, 1, 1, 1, 0.9, 1]);
    expect(drafts.every(({ parser }) => parser === 'gemini_json')).toBe(true);
    expect(counts).toEqual({ profile: 'gemini_json', units: 5, parsed: 5, fallbacks: 0, warnings: {} });
  });

  test('a session id that only the result line, or any later line, names is the handle', () => {
    const named = RESULT.replace('"status"', `"session_id":"${SESSION}","status"`);
    for (const lines of [
      [USER, delta('Hello'), named],
      [INIT.replace(`"session_id":"${SESSION}",`, ''), delta('Hello'), named],
      [delta('Hello').replace('{', `{"session_id":"${SESSION}",`), RESULT],
    ]) {
      const { drafts, evidence } = read(...lines);
      expect(evidence).toMatchObject({ sessionId: SESSION, success: true });
      expect(ofType(drafts, 'lifecycle.session.bound')).toHaveLength(1);
    }
  });

  test('a result line that names another session than the init line changes nothing but is reported', () => {
    const { evidence, drafts } = read(
      INIT,
      delta('Hello'),
      RESULT.replace('"status"', '"session_id":"99999999-f74d-4e81-8b6e-1f4b90158a5a","status"'),
    );
    expect(evidence.sessionId).toBe(SESSION);
    expect(warningsOf(drafts)).toContain('SESSION_ID_CHANGED');
  });

  test('a message that was put together carries the range of the line that completed it', () => {
    const { drafts } = read(INIT, delta('Hello'), RESULT);
    const [final] = ofType(drafts, 'agent.message.final');
    expect(final?.range).toEqual(ofType(drafts, 'agent.usage')[0]?.range);
  });

  test('a tool call between two messages closes the first and opens the second', () => {
    const call = 'run_shell_command__run_shell_command_1794766393020_0';
    const { drafts } = read(
      INIT,
      delta('Calling the tool. '),
      toolUse('run_shell_command', call, { command: 'echo TOOL_RAN_23; pwd' }),
      toolResult(call, 'success', { output: 'TOOL_RAN_23\n/srv/demo/w1' }),
      delta('Done.'),
      RESULT,
    );
    expect(brief(drafts).slice(1, -1)).toEqual([
      ['agent.message.delta', { text: 'Calling the tool. ' }],
      ['agent.message.final', { text: 'Calling the tool. ' }],
      [
        'tool.call.started',
        { name: 'run_shell_command', kind: 'command', input: { command: 'echo TOOL_RAN_23; pwd' } },
      ],
      [
        'tool.call.completed',
        { name: 'run_shell_command', kind: 'command', status: 'completed', output: 'TOOL_RAN_23\n/srv/demo/w1' },
      ],
      ['agent.message.delta', { text: 'Done.' }],
      ['agent.message.final', { text: 'Done.' }],
    ]);
    expect(drafts.slice(1, -1).map(({ itemId }) => itemId)).toEqual([
      'message_1',
      'message_1',
      call,
      call,
      'message_2',
      'message_2',
    ]);
  });

  test('a message that comes whole is final at once', () => {
    const { drafts, evidence } = read(INIT, '{"type":"message","role":"assistant","content":"All at once."}', RESULT);
    expect(ofType(drafts, 'agent.message.final')).toMatchObject([
      { data: { text: 'All at once.' }, confidence: 1, itemId: 'message_1' },
    ]);
    expect(evidence.lastMessage).toBe('All at once.');
  });

  test('every kind of tool is distinguished', () => {
    const names = [
      'run_shell_command',
      'write_file',
      'replace',
      'google_web_search',
      'grep_search',
      'glob',
      'invoke_agent',
      'mcp_parley_ask_human',
      'update_topic',
    ];
    const { drafts } = read(INIT, ...names.map((name, index) => toolUse(name, `call_${index}`, {})));
    expect(dataOf(drafts, 'tool.call.started').map(({ kind }) => kind)).toEqual([
      'command',
      'file_change',
      'file_change',
      'search',
      'search',
      'search',
      'agent',
      'mcp',
      'other',
    ]);
  });

  test('a tool that has the name of an object member is a tool like any other', () => {
    const { drafts } = read(
      INIT,
      toolUse('constructor', 'a', {}),
      toolUse('__proto__', 'b', {}),
      toolUse('toString', 'c', {}),
    );
    expect(dataOf(drafts, 'tool.call.started').map(({ kind }) => kind)).toEqual(['other', 'other', 'other']);
  });

  test('a tool that does not exist fails with its reason, and the turn continues', () => {
    const message = 'Tool "run_shell_command" not found. Did you mean one of: "update_topic"?';
    const { drafts, evidence } = read(
      INIT,
      toolUse('run_shell_command', 'a', {}),
      toolResult('a', 'error', { output: message, error: { type: 'tool_not_registered', message } }),
      delta('Sorry.'),
      RESULT,
    );
    expect(dataOf(drafts, 'tool.call.completed')).toEqual([
      { name: 'run_shell_command', kind: 'command', status: 'failed', output: message, error: message },
    ]);
    expect(evidence).toMatchObject({ success: true, failure: null });
  });

  test('a result without a call before it is kept under its id', () => {
    const { drafts } = read(INIT, toolResult('lost', 'success', { output: 'x' }));
    expect(drafts.at(-1)).toMatchObject({
      type: 'tool.call.completed',
      data: { name: 'unknown', kind: 'other', status: 'completed', output: 'x' },
      itemId: 'lost',
    });
  });

  test('a written file is reported when the call succeeded, and only then', () => {
    const { drafts } = read(
      INIT,
      toolUse('write_file', 'a', { file_path: '/w/a.txt', content: 'x' }),
      toolResult('a', 'success'),
      toolUse('replace', 'b', { file_path: '/w/b.txt' }),
      toolResult('b', 'success', { output: 'ok' }),
      toolUse('write_file', 'c', { file_path: '/w/c.txt' }),
      toolResult('c', 'error', { error: { type: 'x', message: 'no' } }),
    );
    expect(ofType(drafts, 'artifact.file.changed')).toMatchObject([
      { data: { path: '/w/a.txt', kind: 'unknown' }, itemId: 'a' },
      { data: { path: '/w/b.txt', kind: 'update' }, itemId: 'b' },
    ]);
  });

  test('an error event is a warning or an error, and never terminal', () => {
    const { drafts } = read(
      INIT,
      '{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}',
      '{"type":"error","severity":"error","message":"empty"}',
    );
    expect(brief(drafts).slice(1)).toEqual([
      ['diagnostic.engine.warning', { message: 'Loop detected, stopping execution' }],
      ['diagnostic.engine.error', { message: 'empty', terminal: false }],
    ]);
  });

  test('a tool call that is nested too deeply is raw, and the message before it is not lost', () => {
    const nested = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
    const deep = `{"type":"tool_use","tool_name":"x","tool_id":"1","parameters":${nested}}`;
    const { drafts } = read(INIT, delta('Before.'), deep, delta('After.'), RESULT);
    expect(warningsOf(drafts)).toEqual(['NESTING_TOO_DEEP']);
    expect(dataOf(drafts, 'agent.message.final').map(({ text }) => text)).toContain('Before.');
  });
});

describe('the session', () => {
  test('the session id of the init line is the handle and is on every later event', () => {
    const { drafts, evidence } = parse('gemini', {
      stdout: joinLines(INIT, USER, 'noise', delta('Hello'), RESULT),
      stderr: STDERR,
    });
    expect(evidence.sessionId).toBe(SESSION);
    expect(drafts.length).toBeGreaterThan(7);
    expect(drafts.every(({ sessionId }) => sessionId === SESSION)).toBe(true);
  });

  test('the session id of the one object of -o json is the handle', () => {
    const { drafts, evidence } = parse('gemini', { stdout: `{"session_id":"${SESSION}","response":"Hello"}` });
    expect(evidence.sessionId).toBe(SESSION);
    expect(drafts[0]).toMatchObject({
      type: 'lifecycle.session.bound',
      data: { session_id: SESSION, handle_type: 'session_id' },
    });
    expect(drafts.every(({ sessionId }) => sessionId === SESSION)).toBe(true);
  });

  test('an id that could be taken for an index or for latest is no handle', () => {
    for (const id of ['latest', '12345678', '7', '--last', 'a b']) {
      const { drafts, evidence } = read(INIT.replace(SESSION, id), RESULT);
      expect(evidence.sessionId, id).toBeNull();
      expect(warningsOf(drafts), id).toEqual(['SESSION_ID_INVALID']);
      expect(drafts.at(-1)?.sessionId).toBe(id);
    }
  });

  test('output without a session id has no handle', () => {
    expect(read(USER, delta('Hello'), RESULT).evidence).toMatchObject({ sessionId: null, success: true });
    expect(parse('gemini', { stdout: '{"response":"Hello"}' }).evidence).toMatchObject({
      sessionId: null,
      success: true,
    });
  });

  test('a second session id within a turn is reported, and the first one counts', () => {
    const { drafts, evidence } = read(
      INIT,
      INIT.replace(SESSION, '28c926d4-640b-4f49-8c8a-017f79622861'),
      INIT,
      RESULT,
    );
    expect(evidence.sessionId).toBe(SESSION);
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_CHANGED']);
  });
});

describe('how a turn ended', () => {
  test('a result with status success is a success', () => {
    expect(read(INIT, USER, delta('Hello'), RESULT).evidence).toEqual({
      sessionId: SESSION,
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      receipts: [],
      done: null,
      lastMessage: 'Hello',
      complaint: null,
    });
  });

  test.each([
    ['auth', '[API Error: API key not valid. Please pass a valid API key.]'],
    [
      'auth',
      '[API Error: {"error":{"code":401,"message":"Request had invalid authentication ' +
        'credentials.","status":"UNAUTHENTICATED"}}]',
    ],
    ['turn', '[API Error: fake rate limit]\nPlease wait and try again later.'],
    ['turn', 'You have exhausted your daily quota on this model.'],
    ['turn', '[API Error: {"error":{"code":500,"message":"fake internal error","status":"INTERNAL"}}]'],
    ['turn', '[API Error: Incomplete JSON segment at the end]'],
    ['turn', '[API Error: terminated]'],
  ] as const)('a result with an error is a failure of kind %s when it says: %s', (kind, message) => {
    const { drafts, evidence } = read(INIT, USER, delta('partial '), failed(message));
    expect(evidence).toMatchObject({
      success: false,
      failure: { kind, message },
      unfinished: null,
      lastMessage: 'partial ',
    });
    expect(dataOf(drafts, 'diagnostic.engine.error')).toEqual([{ message, terminal: true }]);
  });

  test('an empty answer exits with 0 and is a failure with the reason of its error event', () => {
    const message =
      'The model returned an empty response with no text or thoughts. This may be a transient API issue; please ' +
      'try again.';
    const { evidence } = read(
      INIT,
      USER,
      JSON.stringify({ type: 'error', severity: 'error', message }),
      `{"type":"result","status":"error","stats":${STATS}}`,
    );
    expect(evidence).toMatchObject({ success: false, failure: { kind: 'turn', message }, lastMessage: null });
  });

  test('a loop that was stopped ends with status success and is none', () => {
    const { evidence } = read(
      INIT,
      USER,
      '{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}',
      RESULT,
    );
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'ERROR_EVENT_SEEN' });
  });

  test('an error event before a result with status success counts against it, also in another shape', () => {
    expect(read(INIT, '{"type":"error","severity":"error","message":"x"}', RESULT).evidence).toMatchObject({
      success: false,
      unfinished: 'ERROR_EVENT_SEEN',
    });
    expect(read(INIT, '{"type":"error","detail":"x"}', RESULT).evidence).toMatchObject({
      success: false,
      unfinished: 'ERROR_EVENT_SEEN',
    });
  });

  test('an answer cut at the token limit looks like any other success', () => {
    expect(read(INIT, USER, delta('truncated te'), RESULT).evidence).toMatchObject({
      success: true,
      lastMessage: 'truncated te',
    });
  });

  test('a turn that was ended by a signal has no result and is unfinished, although it exits with 0', () => {
    const { evidence, drafts } = read(INIT, USER, delta('tick 0\n'), delta('tick 1\n'));
    expect(evidence).toMatchObject({ sessionId: SESSION, success: false, failure: null, unfinished: 'NO_RESULT' });
    expect(dataOf(drafts, 'agent.message.delta')).toHaveLength(2);
  });

  test('a result of an unknown status is drift and no result', () => {
    const { evidence, drafts } = read(INIT, delta('Hello'), '{"type":"result","status":"partial"}');
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'NO_RESULT' });
    expect(warningsOf(drafts)).toEqual(['FIELD_DRIFT']);
  });

  test('a process that printed nothing is unfinished', () => {
    const { evidence, drafts, counts } = parse('gemini', {});
    expect(evidence).toMatchObject({ sessionId: null, success: false, failure: null, unfinished: 'NO_RESULT' });
    expect(drafts).toEqual([]);
    expect(counts.units).toBe(0);
  });

  test.each([
    [
      'turn',
      'Error resuming session: Invalid session identifier "11111111-2222-3333-4444-555555555555".',
      '\n  Searched for sessions in /srv/demo/h3/.gemini/tmp/w3/chats.\n',
    ],
    ['turn', 'Error resuming session: No previous sessions found for this project.', '\n'],
    ['auth', 'Invalid auth method selected.', '\n'],
  ] as const)('a start that failed leaves its reason as a complaint of kind %s: %s', (kind, message, rest) => {
    expect(parse('gemini', { stderr: `${message}${rest}` }).evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_RESULT',
      complaint: { kind, message },
    });
  });

  test('a complaint is given without its colour codes', () => {
    const { evidence } = parse('gemini', {
      stderr: '\u001b[31mGemini CLI is not running in a trusted directory. To proceed, use `--skip-trust`.\u001b[0m\n',
    });
    expect(evidence.complaint).toEqual({
      kind: 'turn',
      message: 'Gemini CLI is not running in a trusted directory. To proceed, use `--skip-trust`.',
    });
  });
});

describe('questions', () => {
  const parameters = {
    prompt: 'Which database?\nPick one.',
    options: ['Postgres', 'SQLite', 'Ünïcode 漢字 🚀'],
    wait_for_previous: true,
  };

  test('a call of ask_human whose result succeeded is a question with its options', () => {
    const { evidence } = read(
      INIT,
      toolUse('mcp_parley_ask_human', 'a', parameters),
      toolResult('a', 'success', { output: 'Question recorded. End your turn now and wait.' }),
      delta('Asked.'),
      RESULT,
    );
    expect(evidence.questions).toEqual([
      {
        kind: 'choose_one',
        prompt: 'Which database?\nPick one.',
        options: parameters.options.map((option) => ({ label: option, value: option })),
        channel: 'tool',
      },
    ]);
  });

  test('two questions whose results come after both calls are kept in order', () => {
    const { evidence } = read(
      INIT,
      toolUse('mcp_parley_ask_human', 'a', parameters),
      toolUse('mcp_parley_ask_human', 'b', { prompt: 'Second?', options: ['x', 'y'] }),
      toolResult('a', 'success'),
      toolResult('b', 'success'),
      RESULT,
    );
    expect(evidence.questions.map(({ prompt }) => prompt)).toEqual(['Which database?\nPick one.', 'Second?']);
  });

  test('a call that failed, that has no result, or that belongs to another tool asked nobody', () => {
    const { evidence } = read(
      INIT,
      toolUse('mcp_parley_ask_human', 'a', parameters),
      toolResult('a', 'error', { output: 'x', error: { type: 'tool_not_registered', message: 'x' } }),
      toolUse('mcp_parley_ask_human', 'b', parameters),
      toolUse('ask_user', 'c', parameters),
      toolResult('c', 'success'),
      RESULT,
    );
    expect(evidence.questions).toEqual([]);
  });

  test('a tool of the same name on another server asks nobody', () => {
    const names = ['mcp_desk_ask_human', 'mcp_my_parley_ask_human', 'parley_ask_human_too', 'ask_human'];
    const lines = names.flatMap((name, index) => [
      toolUse(name, `${index}`, parameters),
      toolResult(`${index}`, 'success'),
    ]);
    expect(read(INIT, ...lines, RESULT).evidence).toMatchObject({ questions: [], receipts: [] });
  });

  test('the response of the tool is kept with the question: the nonce of its turn, or none', () => {
    const { evidence } = read(
      INIT,
      toolUse('mcp_parley_ask_human', 'a', parameters),
      toolResult('a', 'success', { output: writeReceipt('int_1') }),
      toolUse('mcp_parley_ask_human', 'b', parameters),
      toolResult('b', 'success'),
      RESULT,
    );
    expect(evidence.receipts).toEqual(['int_1', null]);
  });

  test('a question may also end the last message, put together from its pieces', () => {
    const { evidence } = read(INIT, delta('I need to know.\n{"ask_us'), delta('er":{"prompt":"Which one?"}}'), RESULT);
    expect(evidence.questions).toMatchObject([{ prompt: 'Which one?', channel: 'envelope' }]);
  });
});

describe('drift and damage of stream-json', () => {
  test.each([
    ['{"type":"init","model":"x"}', 'session_id'],
    ['{"type":"message","role":"assistant","content":[{"text":"a"}]}', 'content'],
    ['{"type":"message","role":"model","content":"a"}', 'role'],
    ['{"type":"tool_use","tool_id":"a"}', 'tool_name'],
    ['{"type":"tool_use","tool_name":"a"}', 'tool_id'],
    ['{"type":"tool_result","status":"success"}', 'tool_id'],
    ['{"type":"tool_result","tool_id":"a","status":"ok"}', 'status'],
    ['{"type":"error","severity":"error"}', 'message'],
    ['{"type":"result","status":"ok"}', 'status'],
  ])('the drifted line %s is kept as raw with a warning about %s, and the next line is read', (line, path) => {
    const { drafts, counts } = read(INIT, line, USER);
    expect(brief(drafts).slice(1, 3)).toMatchObject([
      ['raw.stdout', { text: line }],
      ['diagnostic.parser.warning', { code: 'FIELD_DRIFT', path }],
    ]);
    expect(typesOf(drafts).at(-1)).toBe('lifecycle.engine.progress');
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1 });
  });

  test('an event of an unknown type and a line that is no JSON are raw, and the lines after them are read', () => {
    const { drafts, evidence, counts } = read(
      INIT,
      '{"type":"thought","text":"hm"}',
      'Loaded cached credentials.',
      '{"type":"mess',
      delta('Hello'),
      RESULT,
    );
    expect(dataOf(drafts, 'raw.stdout').map(({ text }) => text)).toEqual([
      '{"type":"thought","text":"hm"}',
      'Loaded cached credentials.',
      '{"type":"mess',
    ]);
    expect(warningsOf(drafts)).toEqual(['UNKNOWN_EVENT_TYPE', 'LINE_UNDECODABLE', 'LINE_UNDECODABLE']);
    expect(counts).toMatchObject({ units: 6, parsed: 3, fallbacks: 3 });
    expect(evidence).toMatchObject({ success: true, lastMessage: 'Hello' });
  });

  test('text before the first event does not hide the stream', () => {
    const { drafts, evidence } = read(
      'Loaded cached credentials.',
      '',
      '{"note":"an object that is no event"}',
      INIT,
      delta('Hello'),
      RESULT,
    );
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true });
    expect(warningsOf(drafts)).toEqual(['LINE_UNDECODABLE', 'UNKNOWN_EVENT_TYPE']);
    expect(dataOf(drafts, 'raw.stdout').map(({ text }) => text)).toEqual([
      'Loaded cached credentials.',
      '',
      '{"note":"an object that is no event"}',
    ]);
  });

  test('colour codes are reported once, with the number of lines that have them', () => {
    for (const lines of [
      [`\u001b[0m${INIT}`, RESULT],
      [INIT, `\u001b[0m${RESULT}`],
      ['\u001b[33mwarning\u001b[0m', INIT, RESULT],
    ]) {
      const warnings = dataOf(read(...lines).drafts, 'diagnostic.parser.warning').filter(
        ({ code }) => code === 'ANSI_SEQUENCES',
      );
      expect(
        warnings.map((warning) => warning.lines),
        JSON.stringify(lines[0]?.slice(0, 20)),
      ).toEqual([1]);
    }
  });
});

describe('the one object of -o json', () => {
  const document = {
    session_id: SESSION,
    response: 'Hello from the fake model.',
    stats: {
      models: {
        'fake-gemini': {
          api: { totalRequests: 2 },
          tokens: { input: 20, prompt: 20, candidates: 10, total: 30, cached: 3, thoughts: 2, tool: 0 },
        },
        'fake-router': {
          api: { totalRequests: 1 },
          tokens: { input: 5, prompt: 5, candidates: 1, total: 6, cached: 0, thoughts: 0, tool: 0 },
        },
      },
      tools: { totalCalls: 0 },
      files: { totalLinesAdded: 0, totalLinesRemoved: 0 },
    },
  };
  const PRETTY = JSON.stringify(document, null, 2);
  const FENCE = '```';
  // An object that broke off after its response: neither it nor any line range of it decodes.
  const damaged = (response: string) =>
    `{\n  "session_id": "${SESSION}",\n  "response": ${JSON.stringify(response)},\n  "stats": {\n    "models": {`;

  test('the whole object is one unit with its message and its usage over all models', () => {
    const { drafts, counts, evidence } = parse('gemini', { stdout: PRETTY });
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id' }],
      ['agent.message.final', { text: 'Hello from the fake model.' }],
      [
        'agent.usage',
        {
          scope: 'turn',
          input_tokens: 25,
          cached_input_tokens: 3,
          output_tokens: 11,
          reasoning_tokens: 2,
          total_tokens: 36,
        },
      ],
    ]);
    expect(drafts.every(({ confidence }) => confidence === 1)).toBe(true);
    expect(drafts.every(({ range }) => range?.from === 0 && range.to === Buffer.byteLength(PRETTY))).toBe(true);
    expect(counts).toEqual({ profile: 'gemini_json', units: 1, parsed: 1, fallbacks: 0, warnings: {} });
    expect(evidence).toMatchObject({
      sessionId: SESSION,
      success: true,
      failure: null,
      unfinished: null,
      lastMessage: 'Hello from the fake model.',
    });
  });

  test('the object on one line is the same', () => {
    expect(parse('gemini', { stdout: `${JSON.stringify(document)}\n` }).evidence).toEqual(
      parse('gemini', { stdout: PRETTY }).evidence,
    );
  });

  test('lines around the object are raw, and the object is a little less certain', () => {
    const parsed = parse('gemini', { stdout: `Loaded cached credentials.\n\n${PRETTY}\nbye\n` });
    expect(finals(parsed)).toEqual([['Hello from the fake model.', 0.8]]);
    expect(dataOf(parsed.drafts, 'raw.stdout').map(({ text }) => text)).toEqual([
      'Loaded cached credentials.',
      '',
      'bye',
    ]);
    expect(warningsOf(parsed.drafts)).toEqual(['TEXT_OUTSIDE_JSON', 'TEXT_OUTSIDE_JSON']);
    expect(parsed.counts).toMatchObject({ units: 3, parsed: 1, fallbacks: 2 });
    expect(parsed.evidence).toMatchObject({ sessionId: SESSION, success: true });
  });

  test('text on the same line as the braces of the object does not hide it', () => {
    for (const stdout of [
      `Loaded cached credentials. ${PRETTY}\n`,
      `${PRETTY} bye\n`,
      `warning: ${JSON.stringify(document)}\n`,
    ]) {
      const parsed = parse('gemini', { stdout });
      expect(parsed.evidence, stdout.slice(0, 30)).toMatchObject({
        sessionId: SESSION,
        lastMessage: 'Hello from the fake model.',
      });
    }
  });

  test('in a damaged object a fenced block of its response is taken first', () => {
    const response = `Or {"b":2}:\n${FENCE}json\n{"a":1}\n${FENCE}\ndone`;
    const parsed = parse('gemini', { stdout: damaged(response) });
    expect(finals(parsed)).toEqual([[response, 0.5]]);
    expect(warningsOf(parsed.drafts)).toEqual(['JSON_FROM_FENCE']);
    expect(parsed.counts).toMatchObject({ units: 1, parsed: 0, fallbacks: 1 });
  });

  test('then any fragment of its response that decodes', () => {
    const parsed = parse('gemini', { stdout: damaged('The answer is {"b":2}.') });
    expect(finals(parsed)).toEqual([['The answer is {"b":2}.', 0.5]]);
    expect(warningsOf(parsed.drafts)).toEqual(['JSON_FROM_FRAGMENT']);
  });

  test('without a response a fenced block of the whole text is taken', () => {
    const parsed = parse('gemini', { stdout: `Oops {"b":2}\n${FENCE}json\n{"a":1}\n${FENCE}\nbye\n` });
    expect(finals(parsed)).toEqual([['{"a":1}', 0.5]]);
    expect(warningsOf(parsed.drafts)).toEqual(['TEXT_OUTSIDE_JSON', 'JSON_FROM_FENCE', 'TEXT_OUTSIDE_JSON']);
    expect(dataOf(parsed.drafts, 'raw.stdout')).toEqual([{ text: 'Oops {"b":2}' }, { text: 'bye' }]);
    expect(parsed.counts).toMatchObject({ units: 3, parsed: 0, fallbacks: 3 });
  });

  test('and at last any fragment of the whole text', () => {
    const parsed = parse('gemini', { stdout: 'Oops [1,2] and more\n' });
    expect(finals(parsed)).toEqual([['[1,2]', 0.5]]);
    expect(warningsOf(parsed.drafts)).toEqual(['JSON_FROM_FRAGMENT', 'TEXT_OUTSIDE_JSON', 'TEXT_OUTSIDE_JSON']);
    expect(dataOf(parsed.drafts, 'raw.stdout')).toEqual([{ text: 'Oops ' }, { text: ' and more' }]);
    expect(parsed.counts).toMatchObject({ units: 1, parsed: 0, fallbacks: 1 });
  });

  test('a text without any JSON is raw, with a warning for each line', () => {
    const parsed = parse('gemini', { stdout: 'The service is down.\n\nTry later.\n' });
    expect(dataOf(parsed.drafts, 'raw.stdout').map(({ text }) => text)).toEqual([
      'The service is down.',
      '',
      'Try later.',
    ]);
    expect(warningsOf(parsed.drafts)).toEqual(['LINE_UNDECODABLE', 'LINE_UNDECODABLE']);
    expect(parsed.counts).toMatchObject({ units: 2, parsed: 0, fallbacks: 2 });
  });

  test('once the response can be had, JSON elsewhere in the text is not taken for it', () => {
    const parsed = parse('gemini', {
      stdout: `${damaged('Nothing to decode here.')}\n${FENCE}json\n{"a":1}\n${FENCE}\n`,
    });
    expect(warningsOf(parsed.drafts)).not.toContain('JSON_FROM_FENCE');
    expect(dataOf(parsed.drafts, 'agent.message.final').map(({ text }) => text)).not.toContain('{"a":1}');
    expect(dataOf(parsed.drafts, 'raw.stdout').length).toBeGreaterThan(0);
  });

  test('salvaged text is never evidence of success', () => {
    for (const stdout of [
      damaged('The answer is {"b":2}.'),
      'Oops {"b":2}\n',
      damaged(`${FENCE}json\n{"a":1}\n${FENCE}`),
    ]) {
      expect(parse('gemini', { stdout }).evidence).toMatchObject({
        success: false,
        failure: null,
        unfinished: 'DOCUMENT_DAMAGED',
      });
    }
  });

  test('the session id of a damaged object is read by hand, with as little confidence as the rest', () => {
    const { drafts, evidence } = parse('gemini', { stdout: damaged('I ask: {"ask_user":{"prompt":"Which?"}}') });
    expect(evidence).toMatchObject({ sessionId: SESSION, questions: [{ prompt: 'Which?' }] });
    expect(ofType(drafts, 'lifecycle.session.bound')[0]?.confidence).toBe(0.5);
  });

  test('a truncated stream keeps its text so far as a message of low confidence', () => {
    const { drafts, evidence } = parse('gemini', {
      stdout: '{"type":"message","role":"assistant","content":"Half {\\"ask_user\\":\\"Which?\\"}","delta":true}\n',
    });
    expect(ofType(drafts, 'agent.message.final')).toMatchObject([
      { data: { text: 'Half {"ask_user":"Which?"}' }, confidence: 0.3 },
    ]);
    expect(evidence.questions).toMatchObject([{ prompt: 'Which?' }]);
  });

  test('text of the model in its response is neither the session nor an error of the engine', () => {
    const response =
      `${FENCE}json\n{"session_id":"28c926d4-0000-4000-8000-017f79622861","error":{"message":"made ` +
      `up"},"response":"made up"}\n${FENCE}`;
    const { evidence } = parse('gemini', { stdout: damaged(response) });
    expect(evidence.sessionId).not.toBe('28c926d4-0000-4000-8000-017f79622861');
    expect(evidence).toMatchObject({ success: false, failure: null, lastMessage: response });
  });

  test('an object with none of its members is drift', () => {
    const stdout = '{\n  "id": 7,\n  "text": "Hello"\n}\n';
    const { drafts, counts } = parse('gemini', { stdout });
    expect(brief(drafts)).toMatchObject([
      ['raw.stdout', { text: stdout.trimEnd() }],
      ['diagnostic.parser.warning', { code: 'FIELD_DRIFT' }],
    ]);
    expect(counts).toMatchObject({ units: 1, parsed: 0, fallbacks: 1 });
  });

  test('an error inside the object is a failure, although the process exits with 0', () => {
    const { evidence, drafts } = parse('gemini', {
      stdout: JSON.stringify({
        session_id: SESSION,
        response: '',
        stats: {},
        error: { type: 'INVALID_STREAM', message: 'The model returned an empty response.' },
      }),
    });
    expect(evidence).toMatchObject({
      success: false,
      failure: { kind: 'turn', message: 'The model returned an empty response.' },
    });
    expect(dataOf(drafts, 'diagnostic.engine.error')).toMatchObject([
      { message: 'The model returned an empty response.', terminal: true },
    ]);
  });

  test('an answer that ends with an envelope is read in the object too', () => {
    const { evidence } = parse('gemini', {
      stdout: JSON.stringify({ session_id: SESSION, response: 'Ok.\n{"done":true,"result":5}' }, null, 2),
    });
    expect(evidence.done).toEqual({ result: 5 });
  });

  test('an object whose response is longer than a line may be still covers every byte once', () => {
    const response = 'x'.repeat(16 * 1024 * 1024);
    const stdout = `{\n  "session_id": "${SESSION}",\n  "response": "${response}",\n  "stats": {}\n}`;
    // parse() checks that no two ranges overlap.
    expect(parse('gemini', { stdout }).cover.stdout).toBe(stdout.length);
  });

  test('an object nested too deeply is raw', () => {
    const { drafts } = parse('gemini', { stdout: `Oops ${'['.repeat(20_000)}${']'.repeat(20_000)}\n` });
    expect(warningsOf(drafts)).toEqual(['NESTING_TOO_DEEP']);
    expect(dataOf(drafts, 'raw.stdout')).toHaveLength(1);
  });

  test('a long output of unknown objects is raw line by line', () => {
    const { counts } = parse('gemini', { stdout: '{"level":"info","msg":"hello world"}\n'.repeat(5_000) });
    expect(counts).toMatchObject({ units: 5_000, parsed: 0 });
  });

  test('a document cut anywhere gives the same drafts', () => {
    for (const stdout of [PRETTY, `é\n${PRETTY}\r\nbye`, damaged('The answer is {"b":2}.')]) {
      const whole = parse('gemini', { stdout });
      for (const chunkBytes of [1, 13]) expect(parse('gemini', { stdout, chunkBytes }).drafts).toEqual(whole.drafts);
    }
  });
});

describe('the error object at the end of stderr', () => {
  const FAILURE = '{"error":{"code":500,"message":"fake internal error","status":"INTERNAL"}}';
  const trace = joinLines(
    `Attempt 1 failed: ${FAILURE}. Max attempts reached`,
    `Error when talking to Gemini API Full report available at: /tmp/gemini-client-error.json _ApiError: ${FAILURE}`,
    '    at throwErrorIfNotOK (file:///srv/demo/chunk-JDPZ4CE3.js:267833:24)',
    '    at async Turn.run (file:///srv/demo/chunk-JDPZ4CE3.js:333001:24) {',
    '  status: 500',
    '}',
  );
  const stderr = STDERR + trace + errorObject({ type: 'Error', message: FAILURE, code: 500 });

  test('it is read when stdout is empty: session, failure and one diagnostic', () => {
    const { drafts, evidence, counts } = parse('gemini', { stderr });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: false, failure: { kind: 'turn', message: FAILURE } });
    expect(dataOf(drafts, 'diagnostic.engine.error')).toMatchObject([
      { message: FAILURE, terminal: true, http_status: 500 },
    ]);
    expect(warningsOf(drafts)).toEqual(['STDERR_TEXT']);
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(stderr.trimEnd().split('\n'));
    expect(counts).toMatchObject({ units: 0, fallbacks: 0 });
  });

  test('its events carry the range of the line that completed it', () => {
    const { drafts } = parse('gemini', { stderr });
    const size = Buffer.byteLength(stderr);
    expect(ofType(drafts, 'lifecycle.session.bound')[0]?.range).toEqual({ stream: 'stderr', from: size - 2, to: size });
    expect(ofType(drafts, 'diagnostic.engine.error')[0]?.range).toEqual({ stream: 'stderr', from: size - 2, to: size });
  });

  test('a refused key and a missing login are failures of kind auth', () => {
    expect(
      parse('gemini', { stderr: errorObject({ type: 'Error', message: 'forbidden', code: 403 }) }).evidence.failure,
    ).toEqual({ kind: 'auth', message: 'forbidden' });
    expect(
      parse('gemini', { stderr: errorObject({ type: 'FatalAuthenticationError', message: 'no key', code: 41 }) })
        .evidence.failure,
    ).toEqual({ kind: 'auth', message: 'no key' });
    expect(
      parse('gemini', {
        stderr: errorObject({
          type: 'Error',
          message: '{"error":{"code":400,"message":"API key not valid. Please pass a valid API key."}}',
          code: 400,
        }),
      }).evidence.failure?.kind,
    ).toBe('auth');
  });

  test('it is not searched for when stdout has the result', () => {
    const { evidence } = parse('gemini', { stdout: joinLines(INIT, delta('Hello'), RESULT), stderr });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true, failure: null });
  });

  test('a stack trace that ends with a brace is no such object', () => {
    const { evidence, drafts } = parse('gemini', { stderr: STDERR + trace });
    expect(evidence).toMatchObject({ sessionId: null, success: false, failure: null, unfinished: 'NO_RESULT' });
    expect(warningsOf(drafts)).toEqual(['STDERR_TEXT']);
  });
});

test('stderr of gemini is raw with one diagnostic and is no fallback', () => {
  const { drafts, counts } = parse('gemini', { stdout: joinLines(INIT, RESULT), stderr: STDERR });
  expect(dataOf(drafts, 'raw.stderr')).toHaveLength(2);
  expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([{ code: 'STDERR_TEXT', lines: 2 }]);
  expect(counts).toMatchObject({ units: 2, parsed: 2, fallbacks: 0 });
});

test('gemini output cut anywhere gives the same drafts', () => {
  const stdout = joinLines(
    'Loaded cached credentials.',
    INIT,
    USER,
    delta('zwölf 漢字 🚀'),
    toolUse('write_file', 'a', { file_path: 'a' }),
    toolResult('a', 'success'),
    'noise',
    delta('b'),
    RESULT,
  );
  const whole = parse('gemini', { stdout, stderr: STDERR });
  for (const chunkBytes of [1, 2, 7, 100]) {
    const cut = parse('gemini', { stdout, stderr: STDERR, chunkBytes });
    expect(cut.drafts).toEqual(whole.drafts);
    expect(cut.evidence).toEqual(whole.evidence);
    expect(cut.counts).toEqual(whole.counts);
  }
});
