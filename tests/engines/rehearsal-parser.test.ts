import { describe, expect, test } from 'vitest';
import { brief, dataOf, joinLines, parse, typesOf, warningsOf, type Parsed } from '../support/parse.js';

const SESSION = '5ce7e000-0000-4000-8000-000000000001';

const line = (type: string, rest: object = {}) => JSON.stringify({ type, ...rest });
const BOUND = line('session', { session_id: SESSION });
const TEXT = line('message', { id: 'item_1', text: 'Hello.' });
const ASK = line('ask', { id: 'item_2', prompt: 'Which database?', options: ['Postgres', 'SQLite'] });
const APPROVE = line('approve', { id: 'item_2', command: 'rm -r build' });
const USAGE = line('usage', { input_tokens: 4, output_tokens: 2 });
const END = line('end');

function read(...lines: readonly string[]): Parsed {
  return parse('rehearsal', { stdout: joinLines(...lines) });
}

// The drafts of lines after the first, which binds the session.
function after(...lines: readonly string[]): Parsed['drafts'] {
  return read(BOUND, ...lines).drafts.slice(1);
}

describe('events', () => {
  test('a whole plain turn becomes its RASP events, each of them certain', () => {
    const { drafts, counts } = read(line('session', { session_id: SESSION, model: 'script-1' }), TEXT, USAGE, END);
    expect(brief(drafts)).toEqual([
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id', model: 'script-1' }],
      ['agent.message.final', { text: 'Hello.' }],
      ['agent.usage', { scope: 'turn', input_tokens: 4, output_tokens: 2 }],
      ['lifecycle.engine.progress', { phase: 'turn.ended' }],
    ]);
    expect(drafts.every(({ confidence }) => confidence === 1)).toBe(true);
    expect(counts).toMatchObject({ profile: 'rehearsal_ndjson', units: 4, parsed: 4, fallbacks: 0 });
  });

  test('the pieces of a message and the whole of it have the same id', () => {
    const drafts = after(
      line('delta', { id: 'item_1', text: 'Hel' }),
      line('delta', { id: 'item_1', text: 'lo.' }),
      TEXT,
    );
    expect(drafts.map(({ type, data, itemId }) => [type, data, itemId])).toEqual([
      ['agent.message.delta', { text: 'Hel' }, 'item_1'],
      ['agent.message.delta', { text: 'lo.' }, 'item_1'],
      ['agent.message.final', { text: 'Hello.' }, 'item_1'],
    ]);
  });

  test('a command has two ends, and one that was declined says so', () => {
    const drafts = after(
      line('tool_started', { id: 'item_1', command: 'ls' }),
      line('tool_ended', { id: 'item_1', status: 'completed', exit_code: 0, output: '(only played)\n' }),
      line('tool_started', { id: 'item_2', command: 'rm x' }),
      line('tool_ended', { id: 'item_2', status: 'declined', output: '' }),
    );
    expect(brief(drafts)).toEqual([
      ['tool.call.started', { name: 'shell', kind: 'command', input: { command: 'ls' } }],
      [
        'tool.call.completed',
        { name: 'shell', kind: 'command', status: 'completed', exit_code: 0, output: '(only played)\n' },
      ],
      ['tool.call.started', { name: 'shell', kind: 'command', input: { command: 'rm x' } }],
      ['tool.call.completed', { name: 'shell', kind: 'command', status: 'declined', output: '' }],
    ]);
    expect(drafts.map(({ itemId }) => itemId)).toEqual(['item_1', 'item_1', 'item_2', 'item_2']);
  });

  test('a file is a call with both its ends, and a change unless it was declined', () => {
    const write = { name: 'write', kind: 'file_change' };
    expect(brief(after(line('file', { id: 'item_1', path: 'a.txt', status: 'completed' })))).toEqual([
      ['tool.call.started', { ...write, input: { path: 'a.txt' } }],
      ['tool.call.completed', { ...write, status: 'completed' }],
      ['artifact.file.changed', { path: 'a.txt', kind: 'unknown' }],
    ]);
    expect(typesOf(after(line('file', { id: 'item_1', path: 'a.txt', status: 'declined' })))).toEqual([
      'tool.call.started',
      'tool.call.completed',
    ]);
  });

  test('a failure is a terminal error, a question and an approval are steps of the engine', () => {
    expect(brief(after(line('failed', { message: 'as the script says' }), ASK, APPROVE))).toEqual([
      ['diagnostic.engine.error', { message: 'as the script says', terminal: true }],
      ['lifecycle.engine.progress', { phase: 'question.asked' }],
      ['lifecycle.engine.progress', { phase: 'approval.asked' }],
    ]);
  });
});

describe('the session', () => {
  test('the id of the session line is the handle and is on every later event', () => {
    const { drafts, evidence } = parse('rehearsal', { stdout: joinLines(BOUND, TEXT, 'noise', END), stderr: 'x\n' });
    expect(evidence.sessionId).toBe(SESSION);
    expect(drafts.every(({ sessionId }) => sessionId === SESSION)).toBe(true);
  });

  test('an id of another form is kept on the events but is no handle', () => {
    for (const id of ['latest', '3', 'ses_abc', '--session', `${SESSION} `]) {
      const { drafts, evidence } = read(line('session', { session_id: id }), END);
      expect(evidence.sessionId, id).toBeNull();
      expect(warningsOf(drafts), id).toEqual(['SESSION_ID_INVALID']);
    }
  });

  test('a second id within a turn is reported, the same one again is not, and the first one counts', () => {
    const other = line('session', { session_id: SESSION.replace('5', '6') });
    expect(warningsOf(read(BOUND, BOUND, END).drafts)).toEqual([]);
    const { drafts, evidence } = read(BOUND, other, END);
    expect(warningsOf(drafts)).toEqual(['SESSION_ID_CHANGED']);
    expect(evidence.sessionId).toBe(SESSION);
  });
});

describe('how a turn ended', () => {
  test('the end line is a success, and only that line', () => {
    expect(read(BOUND, TEXT, USAGE, END).evidence).toEqual({
      sessionId: SESSION,
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      done: null,
      lastMessage: 'Hello.',
      complaint: null,
    });
    expect(read(BOUND, TEXT, USAGE).evidence).toMatchObject({
      success: false,
      failure: null,
      unfinished: 'NO_TURN_END',
    });
    expect(parse('rehearsal', {}).evidence).toMatchObject({
      sessionId: null,
      success: false,
      unfinished: 'NO_TURN_END',
    });
  });

  test('a failure counts before and after the end line, and in an unknown shape', () => {
    const failed = line('failed', { message: 'x' });
    expect(read(BOUND, failed, END).evidence).toMatchObject({
      success: false,
      failure: { kind: 'turn', message: 'x' },
    });
    expect(read(BOUND, END, failed).evidence).toMatchObject({ success: false, failure: { message: 'x' } });
    expect(read(BOUND, END, line('failed')).evidence).toMatchObject({ success: false, failure: { kind: 'turn' } });
  });

  test('the done marker in the last message has the result', () => {
    const done = line('message', { id: 'item_2', text: '{"done":true,"result":{"ok":1}}' });
    expect(read(BOUND, TEXT, done, END).evidence.done).toEqual({ result: { ok: 1 } });
    expect(read(BOUND, done, TEXT, END).evidence.done).toBeNull();
  });

  test('a refused session leaves its reason as a complaint', () => {
    expect(parse('rehearsal', { stderr: `Error: session ${SESSION} not found\n` }).evidence).toMatchObject({
      sessionId: null,
      complaint: { message: `Error: session ${SESSION} not found` },
    });
  });
});

describe('questions', () => {
  test('an ask line is a question of the engine itself, with its options', () => {
    const options = [
      { label: 'Postgres', value: 'Postgres' },
      { label: 'SQLite', value: 'SQLite' },
    ];
    expect(read(BOUND, ASK, END).evidence.questions).toEqual([
      { kind: 'choose_one', prompt: 'Which database?', options, channel: 'native' },
    ]);
    expect(
      read(BOUND, line('ask', { id: 'item_1', prompt: 'Why?', options: [] }), END).evidence.questions,
    ).toMatchObject([{ kind: 'open_text', prompt: 'Why?' }]);
  });

  test('an approve line is an approval that shows the command, and each of its options is a whole reply', () => {
    const [question, ...more] = read(BOUND, APPROVE, END).evidence.questions;
    expect(more).toEqual([]);
    expect(question).toMatchObject({
      kind: 'approval',
      prompt: expect.stringContaining('rm -r build'),
      channel: 'native',
    });
    expect(question?.options.map(({ value }) => value)).toEqual([
      { decision: 'approve' },
      { decision: 'approve_for_session' },
      { decision: 'decline' },
      { decision: 'cancel' },
    ]);
  });

  test('an agent cannot ask for an approval in the words of a question', () => {
    expect(
      read(BOUND, line('ask', { prompt: 'Run it?', options: [], kind: 'approval' }), END).evidence.questions,
    ).toMatchObject([{ kind: 'open_text' }]);
  });
});

describe('drift and damage', () => {
  test.each([
    [line('session'), 'session_id'],
    [line('delta', { id: 'item_1' }), 'text'],
    [line('message', { text: 7 }), 'text'],
    [line('tool_started'), 'command'],
    [line('tool_ended', { status: 'running' }), 'status'],
    [line('file', { status: 'completed' }), 'path'],
    [line('file', { path: 'a' }), 'status'],
    [line('ask', { options: [] }), 'prompt'],
    [line('approve', { command: ['rm'] }), 'command'],
    [line('usage', { output_tokens: 1 }), 'input_tokens'],
    [line('usage', { input_tokens: 1, output_tokens: -1 }), 'output_tokens'],
    [line('failed', { message: null }), 'message'],
  ])('the drifted line %s is kept as raw with a warning about %s, and the next line is read', (odd, path) => {
    const { drafts, counts } = read(BOUND, odd, TEXT);
    expect(brief(drafts).slice(1, 3)).toMatchObject([
      ['raw.stdout', { text: odd }],
      ['diagnostic.parser.warning', { code: 'FIELD_DRIFT', path }],
    ]);
    expect(typesOf(drafts).at(-1)).toBe('agent.message.final');
    expect(counts).toMatchObject({ units: 3, parsed: 2, fallbacks: 1 });
  });

  test('a line that is no JSON object is raw with its own warning, and the lines after it are read', () => {
    const odd = ['npm warn', '{"type":"message"', '[]', '{"type":"hologram"}'];
    const { drafts, evidence, counts } = read(BOUND, ...odd, TEXT, END);
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
});

test('rehearsal output cut anywhere gives the same drafts', () => {
  const stdout = joinLines(BOUND, TEXT, 'zwölf 漢字 🚀', APPROVE, '', USAGE, END);
  const whole = parse('rehearsal', { stdout, stderr: 'noise\n' });
  for (const chunkBytes of [1, 2, 7, 100]) {
    const cut = parse('rehearsal', { stdout, stderr: 'noise\n', chunkBytes });
    expect(cut.drafts).toEqual(whole.drafts);
    expect(cut.evidence).toEqual(whole.evidence);
    expect(cut.counts).toEqual(whole.counts);
  }
});
