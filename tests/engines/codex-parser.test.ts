import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { writeReceipt } from '../../src/ask/receipt.js';
import { brief, dataOf, joinLines, ofType, parse, typesOf, warningsOf, type Parsed } from '../support/parse.js';
import { runs } from '../support/runs.js';

const THREAD = '01a1e065-6fe8-7fd2-a5f7-dea3d46cd55c';
const STARTED = `{"type":"thread.started","thread_id":"${THREAD}"}`;
const TURN = '{"type":"turn.started"}';
const HELLO = '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Hello from fake model."}}';
const COMPLETED =
  '{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":10,' +
  '"cache_write_input_tokens":0,"output_tokens":20,"reasoning_output_tokens":5}}';
const USAGE = { scope: 'thread', input_tokens: 100, cached_input_tokens: 10, output_tokens: 20, reasoning_tokens: 5 };
const STDERR = joinLines(
  'WARNING: proceeding, even though we could not create PATH aliases: Refusing to create helper binaries under ' +
    'temporary dir "/tmp"',
  'Reading additional input from stdin...',
);
const ASK_ARGUMENTS = '{"prompt":"Which database?\\nPick one.","options":["Postgres","SQLite","Ünïcode 漢字 🚀"]}';

function read(...lines: readonly string[]): Parsed {
  return parse('codex', { stdout: joinLines(...lines) });
}

// The drafts of one line between a thread.started and nothing.
function readOne(line: string): Parsed['drafts'] {
  return read(STARTED, line).drafts.slice(1);
}

function mcpCall(status: string, rest = '"result":null,"error":null', tool = 'ask_human'): string {
  return (
    '{"type":"item.completed","item":{"id":"item_0","type":"mcp_tool_call","server":"parley",' +
    `"tool":"${tool}","arguments":${ASK_ARGUMENTS},${rest},"status":"${status}"}}`
  );
}

function message(text: string): string {
  return JSON.stringify({ type: 'item.completed', item: { id: 'item_9', type: 'agent_message', text } });
}

// A string as JSON, with every so many characters written as escapes.
function spell(text: string, every: number): string {
  const chars = [...text].map((char, index) =>
    index % every === 0 ? escapeAll(char) : JSON.stringify(char).slice(1, -1),
  );
  return `"${chars.join('')}"`;
}

function escapeAll(char: string): string {
  return Array.from({ length: char.length }, (_, at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, '0')}`).join(
    '',
  );
}

describe('events', () => {
  test('a whole plain turn becomes its RASP events, each of them certain', () => {
    const { drafts, counts } = read(STARTED, TURN, HELLO, COMPLETED);
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: THREAD, handle_type: 'session_id' }],
      ['lifecycle.engine.progress', { phase: 'turn.started' }],
      ['agent.message.final', { text: 'Hello from fake model.' }],
      ['agent.usage', USAGE],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual([null, null, 'item_1', null]);
    expect(drafts.every(({ parser, confidence }) => parser === 'codex_ndjson' && confidence === 1)).toBe(true);
    expect(counts).toEqual({ profile: 'codex_ndjson', units: 4, parsed: 4, fallbacks: 0, warnings: {} });
  });

  test('reasoning becomes agent.reasoning', () => {
    const [draft] = readOne(
      '{"type":"item.completed","item":{"id":"item_1","type":"reasoning","text":"**Thinking** about it"}}',
    );
    expect(draft).toMatchObject({ type: 'agent.reasoning', data: { text: '**Thinking** about it' }, itemId: 'item_1' });
  });

  test('a command becomes a tool call that is started and completed under one item id', () => {
    const started =
      '{"type":"item.started","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc \'echo hi ' +
      '&& exit 3\'","aggregated_output":"","exit_code":null,"status":"in_progress"}}';
    const updated =
      '{"type":"item.updated","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc \'echo hi ' +
      '&& exit 3\'","aggregated_output":"hi\\n","exit_code":null,"status":"in_progress"}}';
    const completed =
      '{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"/bin/bash -lc \'echo ' +
      'hi && exit 3\'","aggregated_output":"hi\\n","exit_code":3,"status":"failed"}}';
    const drafts = read(STARTED, started, updated, completed).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      [
        'tool.call.started',
        { name: 'shell', kind: 'command', input: { command: "/bin/bash -lc 'echo hi && exit 3'" } },
      ],
      ['tool.call.updated', { name: 'shell', kind: 'command', output: 'hi\n' }],
      ['tool.call.completed', { name: 'shell', kind: 'command', status: 'failed', output: 'hi\n', exit_code: 3 }],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual(['item_3', 'item_3', 'item_3']);
  });

  test('a command that was declined keeps that status', () => {
    const [draft] = readOne(
      '{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"ls",' +
        '"aggregated_output":"","exit_code":-1,"status":"declined"}}',
    );
    expect(draft?.data).toMatchObject({ status: 'declined', exit_code: -1 });
  });

  test('a file change becomes a tool call and one changed file for each path', () => {
    const changes =
      '[{"path":"/srv/a.txt","kind":"add"},{"path":"/srv/b.txt","kind":"update"},' +
      '{"path":"/srv/c.txt","kind":"delete"},{"path":"/srv/d.txt","kind":"rename"}]';
    const drafts = read(
      STARTED,
      `{"type":"item.started","item":{"id":"item_1","type":"file_change","changes":${changes},"status":"in_progress"}}`,
      `{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":${changes},"status":"completed"}}`,
    ).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      ['tool.call.started', { name: 'apply_patch', kind: 'file_change', input: { changes: JSON.parse(changes) } }],
      ['tool.call.completed', { name: 'apply_patch', kind: 'file_change', status: 'completed' }],
      ['artifact.file.changed', { path: '/srv/a.txt', kind: 'add' }],
      ['artifact.file.changed', { path: '/srv/b.txt', kind: 'update' }],
      ['artifact.file.changed', { path: '/srv/c.txt', kind: 'delete' }],
      ['artifact.file.changed', { path: '/srv/d.txt', kind: 'unknown' }],
    ]);
    expect(drafts.every(({ itemId }) => itemId === 'item_1')).toBe(true);
  });

  test('a file change that failed changed no file', () => {
    const drafts = readOne(
      '{"type":"item.completed","item":{"id":"item_1","type":"file_change",' +
        '"changes":[{"path":"/srv/a.txt","kind":"add"}],"status":"failed"}}',
    );
    expect(typesOf(drafts)).toEqual(['tool.call.completed']);
  });

  test('a call of an MCP tool is named by its server and its tool', () => {
    const result = '{"content":[{"type":"text","text":"ok"}],"structured_content":null}';
    const drafts = read(
      STARTED,
      '{"type":"item.started","item":{"id":"item_2","type":"mcp_tool_call","server":"fs","tool":"read",' +
        '"arguments":{"path":"a"},"result":null,"error":null,"status":"in_progress"}}',
      '{"type":"item.completed","item":{"id":"item_2","type":"mcp_tool_call","server":"fs","tool":"read",' +
        `"arguments":{"path":"a"},"result":${result},"error":null,"status":"completed"}}`,
    ).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      ['tool.call.started', { name: 'fs.read', kind: 'mcp', input: { path: 'a' } }],
      ['tool.call.completed', { name: 'fs.read', kind: 'mcp', status: 'completed', output: JSON.parse(result) }],
    ]);
  });

  test('a search and the work of another agent become tool calls', () => {
    const drafts = read(
      STARTED,
      '{"type":"item.completed","item":{"id":"item_4","type":"web_search","query":"vitest 4"}}',
      '{"type":"item.completed","item":{"id":"item_5","type":"collab_tool_call","tool":"spawn_agent",' +
        '"status":"completed","prompt":"look"}}',
    ).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      ['tool.call.completed', { name: 'web_search', kind: 'search', status: 'completed' }],
      ['tool.call.completed', { name: 'spawn_agent', kind: 'agent', status: 'completed' }],
    ]);
    const [started] = readOne('{"type":"item.started","item":{"id":"item_4","type":"web_search","query":"vitest 4"}}');
    expect(started).toMatchObject({
      type: 'tool.call.started',
      data: { name: 'web_search', kind: 'search', input: { query: 'vitest 4' } },
    });
  });

  test('a list of steps becomes a plan, each time whole', () => {
    const [draft] = readOne(
      '{"type":"item.updated","item":{"id":"item_6","type":"todo_list","items":[{"text":"read",' +
        '"completed":true},{"text":"write","completed":false}]}}',
    );
    expect(draft).toMatchObject({
      type: 'agent.plan',
      data: {
        items: [
          { text: 'read', done: true },
          { text: 'write', done: false },
        ],
      },
      itemId: 'item_6',
    });
  });

  test('an error item is a warning, and a line about reconnecting too', () => {
    const drafts = read(
      STARTED,
      '{"type":"item.completed","item":{"id":"item_0","type":"error","message":"Model metadata for `fake-model` ' +
        'not found."}}',
      '{"type":"error","message":"Reconnecting... 1/2 (stream disconnected before completion: error sending request)"}',
    ).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      ['diagnostic.engine.warning', { message: 'Model metadata for `fake-model` not found.' }],
      [
        'diagnostic.engine.warning',
        { message: 'Reconnecting... 1/2 (stream disconnected before completion: error sending request)' },
      ],
    ]);
    expect(drafts[0]?.itemId).toBe('item_0');
  });

  test('an error line is not terminal, a failed turn is', () => {
    const drafts = read(
      STARTED,
      '{"type":"error","message":"boom"}',
      '{"type":"turn.failed","error":{"message":"boom"}}',
    ).drafts.slice(1);
    expect(brief(drafts)).toEqual([
      ['diagnostic.engine.error', { message: 'boom', terminal: false }],
      ['diagnostic.engine.error', { message: 'boom', terminal: true }],
    ]);
  });

  test('an answer of 3 MB in one line is one message', () => {
    const text = 'x'.repeat(3_000_000);
    const { drafts, evidence } = parse('codex', { stdout: joinLines(STARTED, message(text)), chunkBytes: 65_536 });
    expect(dataOf(drafts, 'agent.message.final')[0]?.text.length).toBe(3_000_000);
    expect(evidence.lastMessage).toHaveLength(3_000_000);
  });
});

// The stored text of long members is cut out of the line, so every spelling of a string in JSON must survive it.
describe('spelling', () => {
  test('a message is stored unchanged, however its line spells it', () => {
    const spellings = [
      '"text":"plain"',
      '"text" : "spaced"',
      '"text":"\\u00e9\\/\\ud83d\\ude80\\n\\"quoted\\""',
      '"text":"lone \\ud83d half"',
      '"text":"ends with a backslash \\\\"',
      '"text":"first","text":"second"',
      '"note":"\\"text\\":\\"fake\\"","text":"real"',
      '"extra":{"text":"inner"},"text":"outer"',
      '"text":"inner","extra":{"text":"outer"}',
      '"text":""',
    ];
    for (const spelling of spellings) {
      const line = `{"type":"item.completed","item":{"id":"item_1","type":"agent_message",${spelling}}}`;
      const said = (JSON.parse(line) as { item: { text: string } }).item.text;
      // parse() checks that the stored text equals the data.
      expect(dataOf(readOne(line), 'agent.message.final'), line).toEqual([{ text: said }]);
    }
  });

  test('any message and any command output survive, with any escapes', () => {
    const text = fc.string({
      unit: fc.constantFrom('a', '"', '\\', '\n', '\u0000', '\u2028', 'é', '漢', '🚀', '\ud800', '}', ':', ','),
      maxLength: 30,
    });
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 4 }), (said, printed, every) => {
        const drafts = read(
          `{"type":"item.completed","item":{"id":${spell(printed, every)},"type":"agent_message",` +
            `"text":${spell(said, every)}}}`,
          `{"type":"item.completed","item":{"id":"item_2","command":${spell(said, every)},` +
            `"type":"command_execution","aggregated_output":${spell(printed, every)},"exit_code":0,` +
            '"status":"completed"}}',
        ).drafts;
        expect(brief(drafts)).toEqual([
          ['agent.message.final', { text: said }],
          [
            'tool.call.completed',
            { name: 'shell', kind: 'command', status: 'completed', output: printed, exit_code: 0 },
          ],
        ]);
      }),
      { numRuns: runs(200) },
    );
  });
});

describe('the session', () => {
  test('the thread id of thread.started is the handle and is on every later event', () => {
    const { drafts, evidence } = parse('codex', {
      stdout: joinLines(STARTED, TURN, 'noise', HELLO, COMPLETED),
      stderr: STDERR,
    });
    expect(evidence.sessionId).toBe(THREAD);
    expect(drafts[0]).toMatchObject({
      type: 'lifecycle.session.bound',
      data: { session_id: THREAD, handle_type: 'session_id' },
    });
    expect(drafts.length).toBeGreaterThan(6);
    expect(drafts.every(({ sessionId }) => sessionId === THREAD)).toBe(true);
  });

  test('events before the thread id carry none', () => {
    const { drafts } = read(TURN, STARTED, TURN);
    expect(drafts.map(({ sessionId }) => sessionId)).toEqual([null, THREAD, THREAD]);
  });

  test('a thread id that is no UUID is kept on the events but is no handle', () => {
    const { drafts, evidence } = read('{"type":"thread.started","thread_id":"my-thread"}', TURN);
    expect(evidence.sessionId).toBeNull();
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_INVALID']);
    expect(drafts.at(-1)?.sessionId).toBe('my-thread');
  });

  test('output without a thread id has no handle', () => {
    expect(read(TURN, HELLO, COMPLETED).evidence).toMatchObject({ sessionId: null, success: true });
  });

  test('a missing, empty or wrong thread id is drift', () => {
    for (const line of [
      '{"type":"thread.started"}',
      '{"type":"thread.started","thread_id":""}',
      '{"type":"thread.started","thread_id":7}',
    ]) {
      const { drafts, evidence } = read(line);
      expect(evidence.sessionId).toBeNull();
      expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([{ code: 'FIELD_DRIFT', path: 'thread_id' }]);
    }
  });

  test('a second thread id within a turn is reported, and the first one counts', () => {
    const { drafts, evidence } = read(
      STARTED,
      '{"type":"thread.started","thread_id":"01a1e066-1af9-75a0-ae2d-94d021efeed4"}',
      STARTED,
      HELLO,
    );
    expect(evidence.sessionId).toBe(THREAD);
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_CHANGED']);
    expect(drafts.every(({ sessionId }) => sessionId === THREAD)).toBe(true);
  });
});

describe('how a turn ended', () => {
  test('a completed turn is a success', () => {
    expect(read(STARTED, TURN, HELLO, COMPLETED).evidence).toEqual({
      sessionId: THREAD,
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      receipts: [],
      done: null,
      lastMessage: 'Hello from fake model.',
      complaint: null,
    });
  });

  test('a command that failed does not fail its turn', () => {
    const command =
      '{"type":"item.completed","item":{"id":"item_3","type":"command_execution","command":"false",' +
      '"aggregated_output":"","exit_code":1,"status":"failed"}}';
    expect(read(STARTED, TURN, command, HELLO, COMPLETED).evidence).toMatchObject({ success: true, failure: null });
  });

  test('error lines before a completed turn are no failure', () => {
    const retry =
      '{"type":"error","message":"Reconnecting... 1/2 (stream disconnected before completion: error sending request)"}';
    expect(read(STARTED, TURN, retry, '{"type":"error","message":"odd"}', HELLO, COMPLETED).evidence).toMatchObject({
      success: true,
      failure: null,
      unfinished: null,
    });
  });

  test.each([
    ['turn', 'We’re currently experiencing high demand, which may cause temporary errors.'],
    [
      'auth',
      'unexpected status 401 Unauthorized: Incorrect API key provided: bad., url: http://127.0.0.1:18080/v1/responses',
    ],
    ['auth', 'Missing environment variable: `FAKE_API_KEY`.'],
    ['turn', 'exceeded retry limit, last status: 429 Too Many Requests'],
    ['turn', '{"error":{"message":"bad request","type":"invalid_request_error"}}'],
    ['turn', "Codex ran out of room in the model's context window. Start a new thread."],
    ['turn', 'stream disconnected before completion: error sending request'],
  ] as const)('a failed turn is a failure of kind %s when it says: %s', (kind, reason) => {
    expect(
      read(
        STARTED,
        TURN,
        JSON.stringify({ type: 'error', message: reason }),
        JSON.stringify({ type: 'turn.failed', error: { message: reason } }),
      ).evidence,
    ).toMatchObject({ success: false, failure: { kind, message: reason }, unfinished: 'NO_TURN_COMPLETED' });
  });

  test('a failed turn in another shape is still a failure', () => {
    const { evidence, drafts } = read(STARTED, TURN, '{"type":"turn.failed","error":"no object"}');
    expect(evidence).toMatchObject({ success: false, failure: { kind: 'turn' } });
    expect(warningsOf(drafts)).toEqual(['FIELD_DRIFT']);
  });

  test('a completed turn whose usage drifted is still completed', () => {
    const { evidence, drafts } = read(STARTED, TURN, HELLO, '{"type":"turn.completed"}');
    expect(evidence).toMatchObject({ success: true, failure: null });
    expect(warningsOf(drafts)).toEqual(['FIELD_DRIFT']);
  });

  test('a turn that was killed after it started is unfinished, not failed', () => {
    expect(read(STARTED, TURN).evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_TURN_COMPLETED',
      lastMessage: null,
    });
  });

  test('a turn that only reconnects is unfinished', () => {
    const waiting = '{"type":"error","message":"Reconnecting... waiting for network"}';
    expect(read(STARTED, TURN, waiting, waiting, waiting).evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_TURN_COMPLETED',
    });
  });

  test('a process that printed nothing is unfinished', () => {
    const { evidence, drafts, counts } = parse('codex', {});
    expect(evidence).toMatchObject({ sessionId: null, success: false, failure: null, unfinished: 'NO_TURN_COMPLETED' });
    expect(drafts).toEqual([]);
    expect(counts).toMatchObject({ units: 0, parsed: 0, fallbacks: 0 });
  });

  test('a resume of an unknown thread leaves its reason as a complaint', () => {
    const { evidence } = parse('codex', {
      stderr:
        `${STDERR}Error: thread/resume: thread/resume failed: no rollout found for thread id ` +
        `01a1e065-0000-7fd2-a5f7-dea3d46cd55c (code -32600)\n\nStack backtrace:\n   0: <unknown>\n`,
    });
    expect(evidence).toMatchObject({ sessionId: null, success: false });
    expect(evidence.complaint).toEqual({
      kind: 'turn',
      message:
        'Error: thread/resume: thread/resume failed: no rollout found for thread id ' +
        '01a1e065-0000-7fd2-a5f7-dea3d46cd55c (code -32600)',
    });
  });

  test('what stderr says is never evidence of a failure', () => {
    const stderr =
      '2026-11-15T18:20:21.745796Z ERROR codex_core::tools::router: error=approval policy is Never; reject command\n';
    const { evidence } = parse('codex', { stdout: joinLines(STARTED, TURN, HELLO, COMPLETED), stderr });
    expect(evidence).toMatchObject({ success: true, failure: null });
  });
});

describe('questions', () => {
  test('a call of ask_human that succeeded is a question with its options', () => {
    const { evidence } = read(
      STARTED,
      TURN,
      mcpCall('completed', '"result":{"content":[]},"error":null'),
      HELLO,
      COMPLETED,
    );
    expect(evidence.questions).toEqual([
      {
        kind: 'choose_one',
        prompt: 'Which database?\nPick one.',
        options: [
          { label: 'Postgres', value: 'Postgres' },
          { label: 'SQLite', value: 'SQLite' },
          { label: 'Ünïcode 漢字 🚀', value: 'Ünïcode 漢字 🚀' },
        ],
        channel: 'tool',
      },
    ]);
  });

  test('several questions of one turn are kept in order', () => {
    const second = mcpCall('completed').replace(ASK_ARGUMENTS, '{"prompt":"Second?","options":["x","y"]}');
    expect(
      read(STARTED, mcpCall('completed'), second, COMPLETED).evidence.questions.map(({ prompt }) => prompt),
    ).toEqual(['Which database?\nPick one.', 'Second?']);
  });

  test('a call of ask_human that failed, was only started, or belongs to another tool asked nobody', () => {
    const failed = mcpCall(
      'failed',
      '"result":null,"error":{"message":"MCP tool call requires approval, but approval policy is never"}',
    );
    const started = mcpCall('in_progress').replace('item.completed', 'item.started');
    const { evidence, drafts } = read(
      STARTED,
      failed,
      started,
      mcpCall('completed', '"result":null,"error":null', 'ask_user'),
      COMPLETED,
    );
    expect(evidence.questions).toEqual([]);
    expect(dataOf(drafts, 'tool.call.completed')[0]).toMatchObject({
      name: 'parley.ask_human',
      status: 'failed',
      error: 'MCP tool call requires approval, but approval policy is never',
    });
  });

  test('a tool of the same name on another server asks nobody', () => {
    const others = ['desk', 'parley2', 'not.parley', ''].map((server) =>
      mcpCall('completed').replace('"server":"parley"', `"server":"${server}"`),
    );
    expect(read(STARTED, ...others, COMPLETED).evidence).toMatchObject({ questions: [], receipts: [] });
  });

  test('the response of the tool is kept with the question: the nonce of its turn, or none', () => {
    const calls = [writeReceipt('int_1'), 'Question recorded.'].map((text) =>
      mcpCall(
        'completed',
        `"result":{"content":[{"type":"text","text":"${text}"}],"structured_content":null},"error":null`,
      ),
    );
    const { evidence } = read(STARTED, ...calls, mcpCall('completed'), COMPLETED);
    expect(evidence.receipts).toEqual(['int_1', null, null]);
  });

  test('a question may also end the last message, and only the last one', () => {
    const ask = message('I need to know.\n{"ask_user":{"prompt":"Which one?"}}');
    expect(read(STARTED, ask, COMPLETED).evidence.questions).toMatchObject([
      { prompt: 'Which one?', channel: 'envelope' },
    ]);
    expect(read(STARTED, ask, message('Never mind.'), COMPLETED).evidence.questions).toEqual([]);
  });

  test('a done marker with a result is read from the last message', () => {
    expect(read(STARTED, message('{"done":true,"result":{"files":2}}'), COMPLETED).evidence.done).toEqual({
      result: { files: 2 },
    });
  });
});

describe('drift and damage', () => {
  test.each([
    ['{"type":"item.completed"}', 'item'],
    ['{"type":"item.completed","item":{"type":"agent_message","text":"a"}}', 'item.id'],
    ['{"type":"item.completed","item":{"id":"item_1"}}', 'item.type'],
    ['{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":["a"]}}', 'item.text'],
    ['{"type":"item.completed","item":{"id":"item_1","type":"reasoning"}}', 'item.text'],
    ['{"type":"item.completed","item":{"id":"item_1","type":"command_execution","cmd":"ls"}}', 'item.command'],
    [
      '{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","status":"done"}}',
      'item.status',
    ],
    ['{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":{}}}', 'item.changes'],
    [
      '{"type":"item.completed","item":{"id":"item_1","type":"file_change","changes":[{"file":"a"}],' +
        '"status":"completed"}}',
      'item.changes',
    ],
    ['{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","tool":"x"}}', 'item.server'],
    ['{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"x"}}', 'item.tool'],
    [
      '{"type":"item.completed","item":{"id":"item_1","type":"todo_list","items":[{"title":"a"}]}}',
      'item.items[].text',
    ],
    ['{"type":"item.completed","item":{"id":"item_1","type":"error"}}', 'item.message'],
    ['{"type":"error","error":"boom"}', 'message'],
    ['{"type":"turn.completed","usage":[]}', 'usage'],
  ])('the drifted line %s is kept as raw with a warning about %s', (line, path) => {
    const { drafts, counts } = read(STARTED, line, HELLO);
    expect(brief(drafts).slice(1, 3)).toMatchObject([
      ['raw.stdout', { text: line }],
      [
        'diagnostic.parser.warning',
        { code: 'FIELD_DRIFT', event_type: (JSON.parse(line) as { type: string }).type, path },
      ],
    ]);
    expect(drafts[1]?.range).toEqual(drafts[2]?.range);
    expect(typesOf(drafts).at(-1)).toBe('agent.message.final');
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1, warnings: { FIELD_DRIFT: 1 } });
  });

  test('an event or item of an unknown type is kept as raw with a warning that names it', () => {
    const event = '{"type":"turn.paused","for":"lunch"}';
    const item = '{"type":"item.completed","item":{"id":"item_1","type":"hologram"}}';
    const { drafts } = read(STARTED, event, item, HELLO);
    expect(brief(drafts).slice(1)).toMatchObject([
      ['raw.stdout', { text: event }],
      ['diagnostic.parser.warning', { code: 'UNKNOWN_EVENT_TYPE', event_type: 'turn.paused' }],
      ['raw.stdout', { text: item }],
      ['diagnostic.parser.warning', { code: 'UNKNOWN_EVENT_TYPE', event_type: 'item.completed:hologram' }],
      ['agent.message.final', { text: 'Hello from fake model.' }],
    ]);
  });

  test('a line that is no JSON object is raw with its own warning, and the lines after it are read', () => {
    const odd = [
      'Loading…',
      '{"type":"turn.started"',
      '[1,2]',
      '"text"',
      'null',
      '{"type":"turn.started"}{"type":"turn.started"}',
    ];
    const { drafts, counts, evidence } = read(STARTED, ...odd, HELLO, COMPLETED);
    expect(dataOf(drafts, 'raw.stdout').map(({ text }) => text)).toEqual(odd);
    expect(warningsOf(drafts)).toEqual(odd.map(() => 'LINE_UNDECODABLE'));
    expect(counts).toMatchObject({ units: 9, parsed: 3, fallbacks: 6, warnings: { LINE_UNDECODABLE: 6 } });
    expect(evidence).toMatchObject({ success: true, lastMessage: 'Hello from fake model.' });
  });

  test('the raw text of an undecodable line is exactly what its bytes say', () => {
    const stdout = Buffer.from(joinLines(STARTED, 'zwölf 漢字 🚀', HELLO));
    const [raw] = ofType(parse('codex', { stdout }).drafts, 'raw.stdout');
    expect(raw?.range).toEqual({
      stream: 'stdout',
      from: STARTED.length + 1,
      to: STARTED.length + 1 + Buffer.byteLength('zwölf 漢字 🚀\n'),
    });
    expect(stdout.subarray(raw?.range?.from, raw?.range?.to).toString()).toBe(`${raw?.data.text}\n`);
  });

  test('a stream that ends within a line keeps the piece as raw', () => {
    const { drafts } = parse('codex', { stdout: `${STARTED}\n{"type":"item.compl` });
    expect(brief(drafts).slice(1)).toMatchObject([
      ['raw.stdout', { text: '{"type":"item.compl' }],
      ['diagnostic.parser.warning', { code: 'LINE_TRUNCATED' }],
    ]);
  });

  test('a whole last line without an end is read, with a warning', () => {
    const { drafts, evidence } = parse('codex', { stdout: `${STARTED}\n${COMPLETED}` });
    expect(evidence.success).toBe(true);
    expect(warningsOf(drafts)).toEqual(['UNTERMINATED_LAST_LINE']);
  });

  test('empty lines are covered but are neither hits nor fallbacks', () => {
    const { drafts, counts } = read(STARTED, '', '  ', HELLO);
    expect(typesOf(drafts)).toEqual(['lifecycle.session.bound', 'raw.stdout', 'raw.stdout', 'agent.message.final']);
    expect(counts).toMatchObject({ units: 2, parsed: 2, fallbacks: 0, warnings: {} });
  });

  test('lines that end with CR LF are read, and that is reported once', () => {
    const { drafts, counts } = parse('codex', {
      stdout: [STARTED, TURN, HELLO, COMPLETED].map((line) => `${line}\r\n`).join(''),
    });
    expect(counts).toMatchObject({ parsed: 4, fallbacks: 0 });
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([
      { code: 'CRLF_LINES', lines: 4, first_byte: 0 },
    ]);
  });

  test('a byte order mark before the first line is looked through, and the event is less certain', () => {
    const { drafts, evidence } = parse('codex', { stdout: `\ufeff${joinLines(STARTED, TURN)}` });
    expect(evidence.sessionId).toBe(THREAD);
    expect(warningsOf(drafts)).toEqual(['BYTE_ORDER_MARK']);
    expect(drafts[0]).toMatchObject({ type: 'lifecycle.session.bound', confidence: 0.9 });
    expect(drafts[1]).toMatchObject({ type: 'lifecycle.engine.progress', confidence: 1 });
  });

  test('colour codes around a line are looked through, and its events are less certain', () => {
    const { drafts, counts } = read(`\u001b[32m${STARTED}\u001b[0m`, `\u001b[1m${HELLO}\u001b[0m`, COMPLETED);
    expect(counts).toMatchObject({ parsed: 3, fallbacks: 0 });
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([
      { code: 'ANSI_SEQUENCES', lines: 2, first_byte: 0 },
    ]);
    expect(drafts.map(({ type, confidence }) => [type, confidence]).slice(0, 3)).toEqual([
      ['lifecycle.session.bound', 0.9],
      ['agent.message.final', 0.9],
      ['agent.usage', 1],
    ]);
  });

  test('bytes that are no UTF-8 do not stop a line from being read', () => {
    const line = Buffer.concat([
      Buffer.from('{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"a'),
      Buffer.from([0xff, 0xc3]),
      Buffer.from('b"}}\n'),
    ]);
    const { drafts, evidence } = parse('codex', { stdout: line });
    expect(evidence.lastMessage).toBe('a\ufffd\ufffdb');
    expect(warningsOf(drafts)).toEqual(['INVALID_UTF8']);
  });

  test('the replacement character of the engine itself is no invalid UTF-8', () => {
    expect(
      warningsOf(
        read('{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"a\ufffdb"}}').drafts,
      ),
    ).toEqual([]);
  });

  test('a line with NUL bytes is raw with its own warning', () => {
    const { drafts } = read(STARTED, 'a\0b', HELLO);
    expect(warningsOf(drafts)).toEqual(['NUL_BYTES']);
    expect(dataOf(drafts, 'raw.stdout')).toEqual([{ text: 'a\0b' }]);
  });

  test('a line that is nested too deeply is raw, and the lines after it are read', () => {
    const deep =
      '{"type":"item.completed","item":{"id":"item_1","type":"mcp_tool_call","server":"s","tool":"t",' +
      `"status":"completed","result":${'['.repeat(20_000)}${']'.repeat(20_000)}}}`;
    const { drafts, evidence } = read(STARTED, deep, HELLO, COMPLETED);
    expect(warningsOf(drafts)).toEqual(['NESTING_TOO_DEEP']);
    expect(evidence.success).toBe(true);
  });

  test('whatever an event gives for its type, the line is kept and the lines after it are read', () => {
    const odd = [
      '{}',
      '{"type":null}',
      '{"type":7}',
      '{"type":[]}',
      '{"type":{}}',
      '{"type":"__proto__"}',
      '{"type":"constructor"}',
      '{"type":{"toString":1}}',
      '{"type":{"toString":null,"valueOf":null}}',
      '{"__proto__":{"type":"turn.completed"}}',
    ];
    const { drafts, evidence, counts } = read(STARTED, ...odd, HELLO);
    expect(dataOf(drafts, 'raw.stdout').map(({ text }) => text)).toEqual(odd);
    expect(new Set(warningsOf(drafts))).toEqual(new Set(['UNKNOWN_EVENT_TYPE']));
    expect(counts).toMatchObject({ parsed: 2, fallbacks: odd.length });
    expect(evidence).toMatchObject({ success: false, lastMessage: 'Hello from fake model.' });
  });

  test('a line over the limit is kept in raw pieces with one warning, and the lines after it are read', () => {
    const long = Buffer.alloc(16 * 1024 * 1024 + 1, 'x');
    const { drafts, counts, evidence } = parse('codex', {
      stdout: Buffer.concat([Buffer.from(`${STARTED}\n`), long, Buffer.from(`\n${COMPLETED}\n`)]),
    });
    const pieces = ofType(drafts, 'raw.stdout');
    expect(pieces.map(({ data }) => data.part)).toEqual(Array.from({ length: 17 }, (_, part) => part));
    expect(pieces.reduce((sum, { data }) => sum + data.text.length, 0)).toBe(long.length);
    expect(warningsOf(drafts)).toEqual(['LINE_TOO_LONG']);
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1 });
    expect(evidence.success).toBe(true);
  });

  test('an answer that ends with deeply nested JSON does not break the end of the turn', () => {
    const text = `{"ask_user":{"prompt":"a","options":[${'['.repeat(20_000)}${']'.repeat(20_000)}]}}`;
    expect(read(STARTED, message(text), COMPLETED).evidence.success).toBe(true);
  });
});

describe('stderr', () => {
  test('every line of stderr is raw, with one diagnostic for the turn and no fallback', () => {
    const { drafts, counts } = parse('codex', { stdout: joinLines(STARTED, COMPLETED), stderr: STDERR });
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(STDERR.trimEnd().split('\n'));
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([{ code: 'STDERR_TEXT', lines: 2 }]);
    expect(counts).toMatchObject({ units: 2, parsed: 2, fallbacks: 0 });
  });

  test('oddities of stderr are flags of that one diagnostic', () => {
    const { drafts } = parse('codex', {
      stderr: Buffer.concat([Buffer.from('\u001b[31mred\u001b[0m\r\na\0b\r\n'), Buffer.from([0xff, 0x0a])]),
    });
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([
      { code: 'STDERR_TEXT', lines: 3, flags: ['CRLF_LINES', 'ANSI_SEQUENCES', 'NUL_BYTES', 'INVALID_UTF8'] },
    ]);
  });

  test('a turn without stderr has no such diagnostic', () => {
    expect(warningsOf(read(STARTED, COMPLETED).drafts)).toEqual([]);
  });

  test('a line of stderr over the limit is kept in pieces and counted once', () => {
    const { drafts } = parse('codex', { stderr: Buffer.alloc(16 * 1024 * 1024 + 1, 'x') });
    expect(dataOf(drafts, 'raw.stderr')).toHaveLength(17);
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toMatchObject([{ code: 'STDERR_TEXT', lines: 1 }]);
  });

  test('an event on stderr is text, not an event', () => {
    const { evidence, drafts } = parse('codex', { stderr: joinLines(STARTED, COMPLETED) });
    expect(evidence).toMatchObject({ sessionId: null, success: false });
    expect(typesOf(drafts)).toEqual(['raw.stderr', 'raw.stderr', 'diagnostic.parser.warning']);
  });
});

test('codex output cut anywhere gives the same drafts', () => {
  const stdout = joinLines(STARTED, TURN, 'zwölf 漢字 🚀', `\u001b[1m${HELLO}`, '', mcpCall('completed'), COMPLETED);
  const whole = parse('codex', { stdout, stderr: STDERR });
  for (const chunkBytes of [1, 2, 7, 100]) {
    const cut = parse('codex', { stdout, stderr: STDERR, chunkBytes });
    expect(cut.drafts).toEqual(whole.drafts);
    expect(cut.evidence).toEqual(whole.evidence);
    expect(cut.counts).toEqual(whole.counts);
  }
});
