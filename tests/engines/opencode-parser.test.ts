import { describe, expect, test } from 'vitest';
import { writeReceipt } from '../../src/ask/receipt.js';
import { createTurnParser, findEngine } from '../../src/engines/registry.js';
import { brief, dataOf, joinLines, ofType, parse, typesOf, warningsOf, type Parsed } from '../support/parse.js';

const SESSION = 'ses_e1f945bf0ffefqKnzUAxMzYdTN';
const IDS = `"messageID":"msg_1e06bb045001LV5Cutg7wmPpMm","sessionID":"${SESSION}"`;

function line(type: string, rest: string, session: string = SESSION): string {
  return `{"type":"${type}","timestamp":1794766517087,"sessionID":"${session}",${rest}}`;
}

const START = line('step_start', `"part":{"id":"prt_1e06bb2ea001dKcItM00JqlQcT",${IDS},"type":"step-start"}`);
const TEXT = line(
  'text',
  `"part":{"id":"prt_1e06bb2f1001r1Ik2VEi7FfWau",${IDS},"type":"text","text":"Hello from the fake ` +
    'model.","time":{"start":1794766516977,"end":1794766517021}}',
);
const STOP = finish('stop');
const USAGE = {
  scope: 'step',
  input_tokens: 10,
  cached_input_tokens: 0,
  output_tokens: 5,
  reasoning_tokens: 0,
  total_tokens: 15,
  cost_usd: 0,
};

function finish(reason: string): string {
  return line(
    'step_finish',
    `"part":{"id":"prt_1e06bb406001BjNq1SrNGF7JW3","reason":"${reason}",${IDS},"type":"step-finish",` +
      '"tokens":{"total":15,"input":10,"output":5,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}',
  );
}

function tool(name: string, state: object, callID = 'call_13'): string {
  const id = 'prt_1e06bb2fa001EJv2UzyoIE374R';
  const part = { type: 'tool', tool: name, callID, state, id, sessionID: SESSION };
  return line('tool_use', `"part":${JSON.stringify(part)}`);
}

function errorLine(name: string, data: object): string {
  return line('error', `"error":${JSON.stringify({ name, data })}`);
}

// Steps that all end for no known reason.
function isRunaway(steps: readonly (readonly string[])[]): boolean {
  const parser = createTurnParser(findEngine('opencode'));
  parser.push('stdout', Buffer.from(joinLines(...steps.flatMap((within) => [START, ...within, finish('unknown')]))));
  return parser.runaway;
}

function empty(count: number): string[][] {
  return Array.from({ length: count }, () => []);
}

function read(...lines: readonly string[]): Parsed {
  return parse('opencode', { stdout: joinLines(...lines) });
}

// The drafts of lines after the first, which binds the session.
function after(...lines: readonly string[]): Parsed['drafts'] {
  return read(START, ...lines).drafts.slice(2);
}

describe('events', () => {
  test('a whole plain turn becomes its RASP events, each of them certain', () => {
    const { drafts, counts } = read(START, TEXT, STOP);
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id' }],
      ['lifecycle.engine.progress', { phase: 'step.started' }],
      ['agent.message.final', { text: 'Hello from the fake model.' }],
      ['lifecycle.engine.progress', { phase: 'step.finished', reason: 'stop' }],
      ['agent.usage', USAGE],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual([null, null, 'prt_1e06bb2f1001r1Ik2VEi7FfWau', null, null]);
    expect(drafts.every(({ parser, confidence }) => parser === 'opencode_ndjson' && confidence === 1)).toBe(true);
    expect(counts).toEqual({ profile: 'opencode_ndjson', units: 3, parsed: 3, fallbacks: 0, warnings: {} });
  });

  test('reasoning becomes agent.reasoning', () => {
    expect(
      after(
        line(
          'reasoning',
          `"part":{"id":"prt_9",${IDS},"type":"reasoning","text":"thinking...","time":{"start":1,"end":2}}`,
        ),
      ),
    ).toMatchObject([{ type: 'agent.reasoning', data: { text: 'thinking...' }, itemId: 'prt_9' }]);
  });

  test('a command becomes a tool call with both its ends, its exit code and its duration', () => {
    const state = {
      status: 'completed',
      input: { command: 'echo TOOL_RAN_23; pwd' },
      output: 'TOOL_RAN_23\n/srv\n',
      metadata: { output: 'TOOL_RAN_23\n/srv\n', exit: 0, truncated: false },
      title: 'x',
      time: { start: 1794767392455, end: 1794767392678 },
    };
    const drafts = after(tool('bash', state));
    expect(brief(drafts)).toEqual([
      ['tool.call.started', { name: 'bash', kind: 'command', input: { command: 'echo TOOL_RAN_23; pwd' } }],
      [
        'tool.call.completed',
        {
          name: 'bash',
          kind: 'command',
          status: 'completed',
          output: 'TOOL_RAN_23\n/srv\n',
          exit_code: 0,
          duration_ms: 223,
        },
      ],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual(['call_13', 'call_13']);
    expect(drafts[0]?.range).toEqual(drafts[1]?.range);
  });

  test('every kind of tool is distinguished', () => {
    const names = [
      'bash',
      'write',
      'edit',
      'multiedit',
      'patch',
      'apply_patch',
      'task',
      'grep',
      'glob',
      'websearch',
      'parley_ask_human',
      'read',
      'invalid',
    ];
    const drafts = after(...names.map((name) => tool(name, { status: 'completed', input: {}, output: '' })));
    expect(dataOf(drafts, 'tool.call.started').map(({ kind }) => kind)).toEqual([
      'command',
      'file_change',
      'file_change',
      'file_change',
      'file_change',
      'file_change',
      'agent',
      'search',
      'search',
      'search',
      'mcp',
      'other',
      'other',
    ]);
  });

  test('a tool that has the name of an object member is a tool like any other', () => {
    const drafts = after(
      ...['constructor', '__proto__', 'toString'].map((name) =>
        tool(name, { status: 'completed', input: {}, output: '' }),
      ),
    );
    expect(dataOf(drafts, 'tool.call.started').map(({ kind }) => kind)).toEqual(['other', 'other', 'other']);
  });

  test('a written file is reported with the path the engine resolved, and whether it is new', () => {
    const write = {
      status: 'completed',
      input: { filePath: 'a.txt', content: 'x' },
      output: 'Wrote file successfully.',
      metadata: { filepath: '/w/a.txt', exists: false },
      time: { start: 1, end: 2 },
    };
    const drafts = after(
      tool('write', write),
      tool('write', { ...write, metadata: { filepath: '/w/a.txt', exists: true } }),
      tool('edit', {
        status: 'completed',
        input: { filePath: '/w/b.txt', oldString: 'a', newString: 'b' },
        output: 'ok',
        metadata: {},
      }),
      tool('write', { status: 'completed', input: { filePath: '/w/c.txt' }, output: 'ok' }),
      tool('write', { ...write, status: 'error', error: 'disk full' }),
      tool('patch', { status: 'completed', input: {}, output: 'ok' }),
    );
    expect(ofType(drafts, 'artifact.file.changed')).toMatchObject([
      { data: { path: '/w/a.txt', kind: 'add' }, itemId: 'call_13' },
      { data: { path: '/w/a.txt', kind: 'update' } },
      { data: { path: '/w/b.txt', kind: 'update' } },
      { data: { path: '/w/c.txt', kind: 'unknown' } },
    ]);
  });

  test('a call that failed has its error, and one that was rejected is declined', () => {
    const rejected = 'The user rejected permission to use this specific tool call.';
    const drafts = after(
      tool('read', {
        status: 'error',
        input: { filePath: '/etc/hostname' },
        error: rejected,
        time: { start: 1, end: 35 },
      }),
      tool('parley_ask_human', { status: 'error', input: {}, error: 'MCP error -32000: Connection closed' }),
    );
    expect(dataOf(drafts, 'tool.call.completed')).toEqual([
      { name: 'read', kind: 'other', status: 'declined', error: rejected, duration_ms: 34 },
      { name: 'parley_ask_human', kind: 'mcp', status: 'failed', error: 'MCP error -32000: Connection closed' },
    ]);
  });

  test('an error becomes a terminal error with its name and its HTTP status', () => {
    expect(
      brief(after(errorLine('APIError', { message: 'fake internal error', statusCode: 500, isRetryable: true }))),
    ).toEqual([
      [
        'diagnostic.engine.error',
        { message: 'fake internal error', terminal: true, code: 'APIError', http_status: 500, retryable: true },
      ],
    ]);
    expect(brief(after(errorLine('UnknownError', {})))).toEqual([
      ['diagnostic.engine.error', { message: 'UnknownError', terminal: true, code: 'UnknownError' }],
    ]);
  });

  test('usage is reported for each step', () => {
    const cost = STOP.replace('"cost":0', '"cost":0.0125').replace('"read":0', '"read":7');
    expect(dataOf(read(START, finish('tool-calls'), START, cost).drafts, 'agent.usage')).toEqual([
      USAGE,
      { ...USAGE, cached_input_tokens: 7, cost_usd: 0.0125 },
    ]);
  });
});

describe('the session', () => {
  test('the sessionID of the first line is the handle and is on every event', () => {
    const { drafts, evidence } = parse('opencode', { stdout: joinLines(START, TEXT, 'noise', STOP), stderr: 'x\n' });
    expect(evidence.sessionId).toBe(SESSION);
    expect(drafts.length).toBeGreaterThan(7);
    expect(drafts.every(({ sessionId }) => sessionId === SESSION)).toBe(true);
  });

  test('an error as the only line names the session too', () => {
    expect(read(errorLine('APIError', { message: 'x', statusCode: 500 })).evidence.sessionId).toBe(SESSION);
  });

  test('a line that drifted or has an unknown type names the session too', () => {
    for (const odd of [line('text', '"part":{}'), line('hologram', '"part":{}')]) {
      const { drafts, evidence } = read(odd);
      expect(evidence.sessionId).toBe(SESSION);
      expect(typesOf(drafts)).toEqual(['lifecycle.session.bound', 'raw.stdout', 'diagnostic.parser.warning']);
    }
  });

  test('an id of another form is kept on the events but is no handle', () => {
    for (const id of ['latest', '3', 'ses_', 'ses_a b', '--session']) {
      const { drafts, evidence } = read(line('text', '"part":{"text":"a"}', id));
      expect(evidence.sessionId, id).toBeNull();
      expect(warningsOf(drafts), id).toEqual(['SESSION_ID_INVALID']);
      expect(drafts.at(-1)?.sessionId).toBe(id);
    }
  });

  test('output without an id has no handle', () => {
    expect(
      read('{"type":"text","part":{"text":"a"}}', '{"type":"step_finish","part":{"reason":"stop"}}').evidence,
    ).toMatchObject({ sessionId: null, success: true });
  });

  test('a second id within a turn is reported, and the first one counts', () => {
    const { drafts, evidence } = read(START, line('text', '"part":{"text":"a"}', 'ses_other'), STOP);
    expect(evidence.sessionId).toBe(SESSION);
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_CHANGED']);
    expect(drafts.every(({ sessionId }) => sessionId === SESSION)).toBe(true);
  });
});

describe('how a turn ended', () => {
  test('a last step that finished with stop is a success', () => {
    expect(read(START, TEXT, STOP).evidence).toEqual({
      sessionId: SESSION,
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      receipts: [],
      done: null,
      lastMessage: 'Hello from the fake model.',
      complaint: null,
    });
  });

  test('a turn of several steps is judged by its last one', () => {
    expect(read(START, finish('tool-calls'), START, TEXT, STOP).evidence).toMatchObject({
      success: true,
      unfinished: null,
    });
    expect(read(START, STOP, START, finish('tool-calls')).evidence).toMatchObject({
      success: false,
      unfinished: 'LAST_STEP_TOOL_CALLS',
    });
  });

  test('a rejected permission ends the run after tool-calls with exit 0, and is no success', () => {
    const rejected = tool('bash', {
      status: 'error',
      input: {},
      error: 'The user rejected permission to use this specific tool call.',
    });
    const { evidence } = parse('opencode', {
      stdout: joinLines(START, TEXT, rejected, finish('tool-calls')),
      stderr: '\u001b[93m\u001b[1m! \u001b[0mpermission requested: bash (pwd); auto-rejecting\n',
    });
    expect(evidence).toMatchObject({ success: false, failure: null, unfinished: 'LAST_STEP_TOOL_CALLS' });
  });

  test.each([
    ['length', 'LAST_STEP_LENGTH'],
    ['unknown', 'LAST_STEP_UNKNOWN'],
    ['content-filter', 'LAST_STEP_CONTENT_FILTER'],
    ['some new reason!', 'LAST_STEP_SOME_NEW_REASON_'],
  ])('a last step that finished with %s is unfinished as %s', (reason, unfinished) => {
    expect(read(START, TEXT, finish(reason)).evidence).toMatchObject({ success: false, failure: null, unfinished });
  });

  test('an empty answer that finished with stop is a success without a message', () => {
    expect(read(START, STOP).evidence).toMatchObject({ success: true, lastMessage: null });
  });

  test('a step that began and did not finish takes an earlier stop back', () => {
    expect(read(START, TEXT, STOP, START).evidence).toMatchObject({ success: false, unfinished: 'NO_STEP_FINISH' });
  });

  test('a step that was killed is unfinished', () => {
    expect(read(START, TEXT).evidence).toMatchObject({ success: false, failure: null, unfinished: 'NO_STEP_FINISH' });
    expect(parse('opencode', {}).evidence).toMatchObject({
      sessionId: null,
      success: false,
      failure: null,
      unfinished: 'NO_STEP_FINISH',
    });
  });

  test.each([
    ['turn', 'APIError', { message: 'bad request', statusCode: 400, isRetryable: false }],
    ['auth', 'APIError', { message: 'Incorrect API key provided', statusCode: 401, isRetryable: false }],
    ['auth', 'APIError', { message: 'no access', statusCode: 403, isRetryable: false }],
    ['turn', 'APIError', { message: 'not there', statusCode: 404, isRetryable: false }],
    ['turn', 'APIError', { message: 'fake internal error', statusCode: 500, isRetryable: true }],
    ['auth', 'ProviderAuthError', { message: 'log in first' }],
    ['turn', 'UnknownError', { message: 'JSON parsing failed: Text: {' }],
    ['turn', 'ContentFilterError', { message: 'filtered' }],
    ['turn', 'UnknownError', { message: 'Unexpected server error. Check server logs for details.' }],
  ] as const)('an error is a failure of kind %s when it is %s %o', (kind, name, data) => {
    expect(read(START, errorLine(name, data)).evidence).toMatchObject({
      success: false,
      failure: { kind, message: data.message },
    });
  });

  test('an error is a failure even when the last step finished with stop, before or after it', () => {
    const error = errorLine('APIError', { message: 'x', statusCode: 500 });
    expect(read(START, error, START, TEXT, STOP).evidence).toMatchObject({ success: false, failure: { message: 'x' } });
    expect(read(START, TEXT, STOP, error).evidence).toMatchObject({ success: false, failure: { message: 'x' } });
  });

  test('an error in another shape is still a failure', () => {
    const { evidence, drafts } = read(START, TEXT, STOP, line('error', '"error":"boom"'));
    expect(evidence).toMatchObject({ success: false, failure: { kind: 'turn' } });
    expect(warningsOf(drafts)).toEqual(['FIELD_DRIFT']);
  });

  test('an unknown session leaves its reason as a complaint without colour codes', () => {
    expect(
      parse('opencode', { stderr: '\u001b[91m\u001b[1mError: \u001b[0mSession not found\n' }).evidence,
    ).toMatchObject({
      sessionId: null,
      success: false,
      complaint: { kind: 'turn', message: 'Error: Session not found' },
    });
  });
});

describe('questions', () => {
  const input = { prompt: 'Which database?\nPick one.', options: ['Postgres', 'SQLite', 'Ünïcode 漢字 🚀'] };

  test('a call of ask_human that completed is a question with its options', () => {
    const { evidence } = read(
      START,
      tool('parley_ask_human', { status: 'completed', input, output: 'Question recorded.' }),
      finish('tool-calls'),
      START,
      TEXT,
      STOP,
    );
    expect(evidence.questions).toEqual([
      {
        kind: 'choose_one',
        prompt: input.prompt,
        options: input.options.map((option) => ({ label: option, value: option })),
        channel: 'tool',
      },
    ]);
  });

  test('several questions of one turn are kept in order', () => {
    const { evidence } = read(
      START,
      tool('parley_ask_human', { status: 'completed', input, output: '' }),
      tool('parley_ask_human', { status: 'completed', input: { prompt: 'Second?' }, output: '' }),
      STOP,
    );
    expect(evidence.questions.map(({ prompt }) => prompt)).toEqual([input.prompt, 'Second?']);
  });

  test('a call that failed, that was rejected, or of an unavailable tool asked nobody', () => {
    const { evidence } = read(
      START,
      tool('parley_ask_human', { status: 'error', input, error: 'MCP error -32000: Connection closed' }),
      tool('parley_ask_human', {
        status: 'error',
        input,
        error: 'The user rejected permission to use this specific tool call.',
      }),
      tool('invalid', {
        status: 'completed',
        input: { tool: 'parley_ask_human', error: 'Model tried to call unavailable tool' },
        output: 'x',
      }),
      tool('task_human', { status: 'completed', input, output: '' }),
      STOP,
    );
    expect(evidence.questions).toEqual([]);
  });

  test('a tool of the same name on another server asks nobody', () => {
    const names = ['desk_ask_human', 'my_parley_ask_human', 'ask_human'];
    expect(
      read(START, ...names.map((name) => tool(name, { status: 'completed', input, output: '' })), STOP).evidence,
    ).toMatchObject({ questions: [], receipts: [] });
  });

  test('the response of the tool is kept with the question: the nonce of its turn, or none', () => {
    const calls = [writeReceipt('int_1'), 'Question recorded.'].map((output) =>
      tool('parley_ask_human', { status: 'completed', input, output }),
    );
    expect(read(START, ...calls, STOP).evidence.receipts).toEqual(['int_1', null]);
  });

  test('a question may also end the last message', () => {
    const text = TEXT.replace('Hello from the fake model.', 'Hm. {\\"ask_user\\":{\\"prompt\\":\\"Which one?\\"}}');
    expect(read(START, text, STOP).evidence.questions).toMatchObject([{ prompt: 'Which one?', channel: 'envelope' }]);
  });
});

describe('drift and damage', () => {
  test.each([
    [line('step_start', '"part":7'), 'part'],
    [line('text', '"part":{"content":"a"}'), 'part.text'],
    [line('reasoning', '"text":"a"'), 'part.text'],
    [line('tool_use', '"part":{"state":{"status":"completed"}}'), 'part.tool'],
    [line('tool_use', '"part":{"tool":"bash"}'), 'part.state'],
    [line('tool_use', '"part":{"tool":"bash","state":{"status":"running"}}'), 'part.state.status'],
    [line('step_finish', '"part":{"tokens":{}}'), 'part.reason'],
    [line('error', '"error":{}'), 'error.data.message'],
  ])('the drifted line %s is kept as raw with a warning about %s, and the next line is read', (odd, path) => {
    const { drafts, counts } = read(START, odd, TEXT);
    expect(brief(drafts).slice(2, 4)).toMatchObject([
      ['raw.stdout', { text: odd }],
      ['diagnostic.parser.warning', { code: 'FIELD_DRIFT', path }],
    ]);
    expect(typesOf(drafts).at(-1)).toBe('agent.message.final');
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1 });
  });

  test('a line that is no JSON object is raw with its own warning, and the lines after it are read', () => {
    const odd = ['npm warn', '{"type":"text"', '[]', '{"type":"hologram"}'];
    const { drafts, evidence, counts } = read(START, ...odd, TEXT, STOP);
    expect(dataOf(drafts, 'raw.stdout').map(({ text }) => text)).toEqual(odd);
    expect(warningsOf(drafts)).toEqual([
      'LINE_UNDECODABLE',
      'LINE_UNDECODABLE',
      'LINE_UNDECODABLE',
      'UNKNOWN_EVENT_TYPE',
    ]);
    expect(counts).toMatchObject({ units: 7, parsed: 3, fallbacks: 4 });
    expect(evidence.success).toBe(true);
  });

  test('a stream of a thousand empty steps is read without an end of its own', () => {
    const { evidence, counts } = read(
      ...Array.from({ length: 1000 }, (_, index) => (index % 2 === 0 ? START : finish('unknown'))),
    );
    expect(counts).toMatchObject({ units: 1000, parsed: 1000 });
    expect(evidence).toMatchObject({ success: false, unfinished: 'LAST_STEP_UNKNOWN' });
  });
});

test('stderr of opencode is raw with one diagnostic and is no fallback', () => {
  const stderr =
    '\u001b[93m\u001b[1m! \u001b[0mpermission requested: external_directory (/etc/*); auto-rejecting\nmore\n';
  const { drafts, counts } = parse('opencode', { stdout: joinLines(START, STOP), stderr });
  expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(stderr.trimEnd().split('\n'));
  expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([
    { code: 'STDERR_TEXT', lines: 2, flags: ['ANSI_SEQUENCES'] },
  ]);
  expect(counts).toMatchObject({ units: 2, parsed: 2, fallbacks: 0 });
});

test('opencode output cut anywhere gives the same drafts', () => {
  const stdout = joinLines(
    START,
    TEXT,
    'zwölf 漢字 🚀',
    tool('bash', { status: 'completed', input: {}, output: 'a\n' }),
    '',
    STOP,
  );
  const whole = parse('opencode', { stdout, stderr: 'noise\n' });
  for (const chunkBytes of [1, 2, 7, 100]) {
    const cut = parse('opencode', { stdout, stderr: 'noise\n', chunkBytes });
    expect(cut.drafts).toEqual(whole.drafts);
    expect(cut.evidence).toEqual(whole.evidence);
    expect(cut.counts).toEqual(whole.counts);
  }
});

describe('a runaway', () => {
  const REASONING = line(
    'reasoning',
    `"part":{"id":"prt_1e06bb2f1001r1Ik2VEi7FfWau",${IDS},"type":"reasoning","text":"Hm."}`,
  );

  test('is twenty steps in a row that ended for no known reason and brought nothing', () => {
    expect([isRunaway(empty(19)), isRunaway(empty(20))]).toEqual([false, true]);
    expect(isRunaway(Array.from({ length: 20 }, () => [TEXT.replace('Hello from the fake model.', '')]))).toBe(true);
  });

  test.each([
    ['text', TEXT],
    ['reasoning', REASONING],
    ['a call', tool('bash', { status: 'completed', input: {}, output: 'x' })],
    ['a call that failed', tool('bash', { status: 'error', input: {}, error: 'x' })],
  ])('is none where each step brings %s', (_what, brought) => {
    expect(isRunaway(Array.from({ length: 100 }, () => [brought]))).toBe(false);
    // In one step of many it is enough: the count begins anew.
    expect(isRunaway([...empty(19), [brought], ...empty(19)])).toBe(false);
    expect(isRunaway([[brought], ...empty(20)])).toBe(true);
  });
});
