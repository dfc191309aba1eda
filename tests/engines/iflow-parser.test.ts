import { describe, expect, test } from 'vitest';
import { brief, dataOf, joinLines, ofType, parse, typesOf, warningsOf } from '../support/parse.js';

const SESSION = 'session-e06bbd16-086a-47b2-8903-c9c250e3c2f7';
const OTHER = 'session-11111111-086a-47b2-8903-c9c250e3c2f7';
const INFO = {
  'session-id': SESSION,
  'conversation-id': '4d8880a8-39cb-43df-919b-7525ec6637f7',
  assistantRounds: 3,
  executionTimeMs: 3803,
  tokenUsage: { input: 812, output: 45, total: 857 },
};
const USAGE = { scope: 'turn', input_tokens: 812, output_tokens: 45, total_tokens: 857, duration_ms: 3803 };
const NOISE = 'Model glm-4.6 does not support thinking mode';

function block(changes: object = {}): string {
  return `<Execution Info>\n${JSON.stringify({ ...INFO, ...changes }, null, 2)}\n</Execution Info>\n`;
}

describe('a plain turn', () => {
  test('stdout is the text of the model, and the block on stderr has the rest', () => {
    const { drafts, counts, evidence } = parse('iflow', { stdout: 'Hello.\n\nI am done.\n', stderr: `\n${block()}` });
    expect(brief(drafts).slice(0, 7)).toEqual([
      ['agent.message.delta', { text: 'Hello.\n' }],
      ['agent.message.delta', { text: '\n' }],
      ['agent.message.delta', { text: 'I am done.\n' }],
      ['raw.stderr', { text: '' }],
      ['lifecycle.session.bound', { session_id: SESSION, handle_type: 'session_id' }],
      ['agent.usage', USAGE],
      ['agent.message.final', { text: 'Hello.\n\nI am done.' }],
    ]);
    expect(drafts.every(({ parser }) => parser === 'iflow_text')).toBe(true);
    expect(counts).toMatchObject({ profile: 'iflow_text', units: 2, parsed: 2, fallbacks: 0 });
    expect(evidence).toEqual({
      sessionId: SESSION,
      success: true,
      failure: null,
      unfinished: null,
      questions: [],
      done: null,
      lastMessage: 'Hello.\n\nI am done.',
      complaint: null,
    });
  });

  test('the pieces of the text are unconfirmed, the whole text is the model by convention', () => {
    const { drafts } = parse('iflow', { stdout: 'Hello.\n', stderr: block() });
    expect(ofType(drafts, 'agent.message.delta')).toMatchObject([{ confidence: 0.4, itemId: 'message_1' }]);
    expect(ofType(drafts, 'agent.message.final')).toMatchObject([{ confidence: 0.7, itemId: 'message_1' }]);
    expect(ofType(drafts, 'lifecycle.session.bound')).toMatchObject([{ confidence: 1 }]);
  });

  test('the pieces joined are the text as it was printed', () => {
    const stdout = 'zwölf 漢字 🚀\n  indented\n\nlast without an end';
    const { drafts } = parse('iflow', { stdout, stderr: block() });
    expect(
      dataOf(drafts, 'agent.message.delta')
        .map(({ text }) => text)
        .join(''),
    ).toBe(stdout);
  });

  test('events about the whole text carry the range of its last line', () => {
    const { drafts } = parse('iflow', { stdout: 'one\ntwo\n', stderr: block() });
    expect(ofType(drafts, 'agent.message.final')[0]?.range).toEqual({ stream: 'stdout', from: 4, to: 8 });
  });

  test('the block is one unit with the range of all its lines', () => {
    const stderr = `before\n${block()}after\n`;
    const { drafts } = parse('iflow', { stdout: 'Hello.\n', stderr });
    const range = { stream: 'stderr', from: 7, to: 7 + block().length };
    expect(ofType(drafts, 'lifecycle.session.bound')[0]?.range).toEqual(range);
    expect(ofType(drafts, 'agent.usage')[0]?.range).toEqual(range);
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(['before', 'after']);
  });

  test('a turn that printed no text but its block is a success without a message', () => {
    const { evidence, drafts } = parse('iflow', { stderr: block() });
    expect(evidence).toMatchObject({ success: true, lastMessage: null });
    expect(ofType(drafts, 'agent.message.final')).toEqual([]);
  });

  test('remarks of the engine are not part of the text of the model', () => {
    const { drafts, evidence } = parse('iflow', { stdout: joinLines(NOISE, 'Hello.', NOISE), stderr: block() });
    expect(evidence.lastMessage).toBe('Hello.');
    expect(dataOf(drafts, 'agent.message.delta')).toEqual([{ text: 'Hello.\n' }]);
    expect(JSON.stringify(brief(drafts))).toContain(NOISE);
  });
});

const noticeOf = (id: string) => `ℹ️  Resuming session ${id} (1 message loaded)\n`;

describe('the session', () => {
  test('the session-id of the block is the handle and is on every later event', () => {
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\n', stderr: `${block()}more\n` });
    expect(evidence.sessionId).toBe(SESSION);
    const bound = drafts.findIndex(({ type }) => type === 'lifecycle.session.bound');
    expect(drafts.slice(bound).length).toBeGreaterThan(3);
    expect(drafts.slice(bound).every(({ sessionId }) => sessionId === SESSION)).toBe(true);
    expect(drafts.slice(0, bound).every(({ sessionId }) => sessionId === null)).toBe(true);
  });

  test('a resumed turn names the same session, and its notice is raw', () => {
    const notice = `ℹ️  Resuming session ${SESSION} (6 messages loaded)`;
    const { drafts, evidence } = parse('iflow', {
      stdout: 'Hello again.\n',
      stderr: `\n${notice}\n\n${block({ 'conversation-id': 'b6a11111-39cb-43df-919b-7525ec6637f7' })}`,
    });
    expect(evidence.sessionId).toBe(SESSION);
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(['', notice, '']);
  });

  test('a resumed turn that is killed before its block has confirmed its session by the notice', () => {
    const notice = `\nℹ️  Resuming session ${SESSION} (6 messages loaded)\n`;
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello ag', stderr: notice });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: false, unfinished: 'NO_EXECUTION_INFO' });
    expect(dataOf(drafts, 'lifecycle.session.bound')).toEqual([expect.objectContaining({ session_id: SESSION })]);
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(['', notice.trim()]);
  });

  test('the block has the last word about the session, and says the same only once', () => {
    expect(
      dataOf(
        parse('iflow', { stdout: 'Hello.\n', stderr: noticeOf(SESSION) + block() }).drafts,
        'lifecycle.session.bound',
      ),
    ).toHaveLength(1);
    const other = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: noticeOf('session-00000000-0000-4000-8000-000000000000') + block(),
    });
    expect(other.evidence.sessionId).toBe(SESSION);
  });

  test('a notice on stdout or later on stderr confirms nothing: a tool may have printed it', () => {
    const notice = `ℹ️  Resuming session ${SESSION} (6 messages loaded)\n`;
    expect(
      parse('iflow', { stdout: 'Hello.\n', stderr: `Error executing tool x\n${notice}` }).evidence.sessionId,
    ).toBeNull();
    expect(parse('iflow', { stdout: notice }).evidence.sessionId).toBeNull();
    expect(parse('iflow', { stdout: 'Hello.\n', stderr: `He said: ${notice}` }).evidence.sessionId).toBeNull();
  });

  test('the conversation-id is never the handle', () => {
    const { 'session-id': _session, ...rest } = INFO;
    const stderr = `<Execution Info>\n${JSON.stringify(rest)}\n</Execution Info>\n`;
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\n', stderr });
    expect(evidence.sessionId).toBeNull();
    expect(drafts.every(({ sessionId }) => sessionId === null)).toBe(true);
  });

  test('a block without a session-id is reported as drift and kept', () => {
    const { 'session-id': _session, ...rest } = INFO;
    const { drafts } = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: `<Execution Info>\n${JSON.stringify(rest)}\n</Execution Info>\n`,
    });
    expect(dataOf(drafts, 'diagnostic.parser.warning')).toContainEqual(
      expect.objectContaining({ code: 'FIELD_DRIFT', path: 'session-id' }),
    );
  });

  test('a session-id of another form is kept on the events but is no handle', () => {
    for (const id of ['latest', '3', '4d8880a8-39cb-43df-919b-7525ec6637f7', '--resume', 'session-']) {
      const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\n', stderr: block({ 'session-id': id }) });
      expect(evidence.sessionId, id).toBeNull();
      expect(warningsOf(drafts), id).toContain('SESSION_ID_INVALID');
    }
  });
});

describe('position of the block', () => {
  test('a block on stdout is believed when stderr has none', () => {
    const { drafts, evidence, counts } = parse('iflow', { stdout: `Hello.\n\n${block()}` });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true, lastMessage: 'Hello.' });
    expect(
      dataOf(drafts, 'agent.message.delta')
        .map(({ text }) => text)
        .join(''),
    ).toBe('Hello.\n\n');
    expect(counts).toMatchObject({ units: 2, parsed: 2 });
    expect(warningsOf(drafts)).toEqual([]);
  });

  test('text after a block on stdout is text again', () => {
    const { evidence } = parse('iflow', { stdout: `Hello.\n${block()}Bye.\n` });
    expect(evidence).toMatchObject({ sessionId: SESSION, lastMessage: 'Hello.\nBye.' });
  });

  test('with a block on both streams the one on stderr is used, and the other is text of the model', () => {
    const { drafts, evidence } = parse('iflow', {
      stdout: `Look:\n${block({ 'session-id': OTHER })}`,
      stderr: block(),
    });
    expect(evidence.sessionId).toBe(SESSION);
    expect(dataOf(drafts, 'lifecycle.session.bound')).toEqual([{ session_id: SESSION, handle_type: 'session_id' }]);
    expect(evidence.lastMessage).toBe(`Look:\n${block({ 'session-id': OTHER })}`.trimEnd());
  });

  test('of several blocks on stderr the last one counts', () => {
    const { evidence } = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: `${block({ 'session-id': OTHER, terminationReason: 'max_turns_exceeded' })}noise\n${block()}`,
    });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true, failure: null });
    const { evidence: reversed } = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: `${block()}${block({ terminationReason: 'max_turns_exceeded' })}`,
    });
    expect(reversed).toMatchObject({ success: false, failure: { kind: 'turn' } });
  });

  test('of several blocks on stdout the last one counts', () => {
    const { evidence } = parse('iflow', { stdout: `${block({ 'session-id': OTHER })}${block()}` });
    expect(evidence.sessionId).toBe(SESSION);
  });

  test('a second session id is reported at any position', () => {
    const notice = `\u2139\ufe0f  Resuming session ${OTHER} (2 messages loaded)\n`;
    for (const output of [
      { stdout: '', stderr: block({ 'session-id': OTHER }) + block() },
      { stdout: '', stderr: notice + block() },
      { stdout: block({ 'session-id': OTHER }) + block() },
    ]) {
      const { drafts, evidence } = parse('iflow', output);
      expect(warningsOf(drafts).filter((code) => code === 'SESSION_ID_CHANGED')).toHaveLength(1);
      expect(evidence.sessionId).toBe(SESSION);
    }
    expect(warningsOf(parse('iflow', { stdout: '', stderr: block() + block() }).drafts)).not.toContain(
      'SESSION_ID_CHANGED',
    );
  });

  test('a block may share its lines with other text', () => {
    const stderr = `notice <Execution Info>${JSON.stringify(INFO)}</Execution Info> trailing\n`;
    const onStderr = parse('iflow', { stdout: 'Hello.\n', stderr });
    expect(onStderr.evidence).toMatchObject({ sessionId: SESSION, success: true });
    expect(dataOf(onStderr.drafts, 'raw.stderr').map(({ text }) => text.trim())).toEqual(['notice', 'trailing']);
    const onStdout = parse('iflow', {
      stdout: `Hello. <Execution Info>\n${JSON.stringify(INFO, null, 2)}\n</Execution Info> Bye.\n`,
    });
    expect(onStdout.evidence).toMatchObject({ sessionId: SESSION, success: true });
    expect(onStdout.evidence.lastMessage).toContain('Hello.');
    expect(onStdout.evidence.lastMessage).toContain('Bye.');
  });

  test('an opening tag that is only mentioned does not hide the block after it', () => {
    const mention = 'Error executing tool grep: no match for <Execution Info> in a.txt';
    for (const output of [
      { stdout: 'Hello.\n', stderr: `${mention}\n${block()}` },
      { stdout: `The block begins with <Execution Info>.\n${block()}` },
    ]) {
      expect(parse('iflow', output).evidence).toMatchObject({ sessionId: SESSION, success: true });
    }
  });

  test('a text that mentions the opening tag is kept whole', () => {
    const stdout = 'It prints <Execution Info> at the end.\nThat is all.\n';
    const { drafts, evidence } = parse('iflow', { stdout, stderr: block() });
    expect(evidence.lastMessage).toBe(stdout.trimEnd());
    expect(
      dataOf(drafts, 'agent.message.delta')
        .map(({ text }) => text)
        .join(''),
    ).toBe(stdout);
  });

  test('a held block with a line that is too long still covers every byte once', () => {
    const long = 'x'.repeat(16 * 1024 * 1024 + 1);
    const text = `<Execution Info>\n${long}\n${JSON.stringify(INFO)}\n</Execution Info>\n`;
    // parse() checks that no two ranges overlap.
    expect(parse('iflow', { stdout: text }).cover.stdout).toBe(text.length);
    expect(parse('iflow', { stderr: text }).cover.stderr).toBe(text.length);
  });
});

const colour = (text: string) => `\u001b[2m${text}\u001b[0m`;

describe('no block that can be read', () => {
  test('without a block the text is kept with low confidence and a diagnostic', () => {
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\nHalf a sen' });
    expect(ofType(drafts, 'agent.message.final')).toMatchObject([
      { data: { text: 'Hello.\nHalf a sen' }, confidence: 0.3 },
    ]);
    expect(ofType(drafts, 'agent.message.delta').every(({ confidence }) => confidence === 0.4)).toBe(true);
    expect(warningsOf(drafts)).toEqual(['BLOCK_MISSING', 'UNTERMINATED_LAST_LINE']);
    expect(evidence).toMatchObject({
      sessionId: null,
      success: false,
      failure: null,
      unfinished: 'NO_EXECUTION_INFO',
      lastMessage: 'Hello.\nHalf a sen',
    });
  });

  test('a byte order mark is left out at the beginning only', () => {
    const { drafts } = parse('iflow', { stdout: '\ufeffone\n\ufefftwo\n' });
    expect(dataOf(drafts, 'agent.message.delta').map(({ text }) => text)).toEqual(['one\n', '\ufefftwo\n']);
  });

  test('colour on the tags, in the block and in the text is looked through and flagged', () => {
    const stderr = `${colour('<Execution Info>')}\n${colour(JSON.stringify(INFO))}\n${colour('</Execution Info>')}\n`;
    const { drafts, evidence } = parse('iflow', { stdout: `${colour('Hello.')}\n`, stderr });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true, lastMessage: 'Hello.' });
    expect(warningsOf(drafts)).toContain('ANSI_SEQUENCES');
  });

  test('a tag that is only mentioned on stderr before the block stays a line of its own', () => {
    const { drafts, evidence } = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: `see <Execution Info> below\nmore\n${block()}`,
    });
    expect(evidence.sessionId).toBe(SESSION);
    expect(
      dataOf(drafts, 'raw.stderr')
        .map(({ text }) => text)
        .filter((text) => text !== ''),
    ).toEqual(['see <Execution Info> below', 'more']);
  });

  test('a broken block is kept as raw, with a diagnostic', () => {
    const stderr = '<Execution Info>\n{ "session-id": "session-e06\n</Execution Info>\n';
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\n', stderr });
    expect(
      dataOf(drafts, 'raw.stderr')
        .map(({ text }) => text)
        .join('\n'),
    ).toBe(stderr.trimEnd());
    expect(warningsOf(drafts)).toEqual(expect.arrayContaining(['BLOCK_UNDECODABLE', 'BLOCK_MISSING']));
    expect(evidence).toMatchObject({ sessionId: null, success: false, unfinished: 'NO_EXECUTION_INFO' });
  });

  test('a block that is no object is broken', () => {
    for (const body of ['', '[]', '"text"', '5', 'null']) {
      const { drafts, evidence } = parse('iflow', {
        stdout: 'Hello.\n',
        stderr: `<Execution Info>\n${body}\n</Execution Info>\n`,
      });
      expect(warningsOf(drafts), body).toContain('BLOCK_UNDECODABLE');
      expect(evidence.success, body).toBe(false);
    }
  });

  test('a broken block on stderr does not hide a good one on stdout', () => {
    const { evidence } = parse('iflow', {
      stdout: `Hello.\n${block()}`,
      stderr: '<Execution Info>\n{\n</Execution Info>\n',
    });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true, lastMessage: 'Hello.' });
  });

  test('a broken block after a good one does not take it back', () => {
    const { evidence, drafts } = parse('iflow', {
      stdout: 'Hello.\n',
      stderr: `${block()}<Execution Info>\n{\n</Execution Info>\n`,
    });
    expect(evidence).toMatchObject({ sessionId: SESSION, success: true });
    expect(warningsOf(drafts)).toContain('BLOCK_UNDECODABLE');
  });

  test('a block without an end is kept line by line, with a diagnostic', () => {
    const stderr = '<Execution Info>\n{\n  "session-id": "session-e06bbd16-086a-47b2-8903-c9c250e3c2f7",\n';
    const { drafts, evidence } = parse('iflow', { stdout: 'Hello.\n', stderr });
    expect(dataOf(drafts, 'raw.stderr').map(({ text }) => text)).toEqual(stderr.trimEnd().split('\n'));
    expect(warningsOf(drafts)).toEqual(expect.arrayContaining(['BLOCK_UNDECODABLE', 'BLOCK_MISSING']));
    expect(evidence.sessionId).toBeNull();
  });

  test('an unterminated block on stdout is text of the model', () => {
    const stdout = 'Hello.\n<Execution Info>\n{ "session-id"\n';
    const { drafts, evidence } = parse('iflow', { stdout });
    expect(
      dataOf(drafts, 'agent.message.delta')
        .map(({ text }) => text)
        .join(''),
    ).toBe(stdout);
    expect(evidence).toMatchObject({ sessionId: null, success: false, lastMessage: stdout.trimEnd() });
  });

  test('a broken block on stdout is text of the model', () => {
    const stdout = 'Hello.\n<Execution Info>\n{ "session-id"\n</Execution Info>\nBye.\n';
    const { drafts, evidence } = parse('iflow', { stdout });
    expect(warningsOf(drafts)).toEqual(expect.arrayContaining(['BLOCK_UNDECODABLE', 'BLOCK_MISSING']));
    expect(evidence).toMatchObject({ success: false, lastMessage: stdout.trimEnd() });
  });

  test('a process that printed nothing has no block either', () => {
    const { drafts, evidence } = parse('iflow', {});
    expect(typesOf(drafts)).toEqual(['diagnostic.parser.warning']);
    expect(evidence).toMatchObject({
      sessionId: null,
      success: false,
      failure: null,
      unfinished: 'NO_EXECUTION_INFO',
      lastMessage: null,
    });
  });
});

describe('how a turn ended', () => {
  test('a block without a reason to stop is a success, also after tools that failed', () => {
    const stderr = `Error executing tool write_file: Tool "write_file" not found in registry.\n\n${block()}`;
    const { evidence } = parse('iflow', { stdout: 'I could not.\n', stderr });
    expect(evidence).toMatchObject({ success: true, failure: null, unfinished: null });
  });

  test('a terminationReason is the failure of the turn', () => {
    const { drafts, evidence } = parse('iflow', {
      stdout: 'Half.\n',
      stderr: block({ terminationReason: 'max_turns_exceeded' }),
    });
    expect(evidence).toMatchObject({
      sessionId: SESSION,
      success: false,
      failure: { kind: 'turn', message: expect.stringContaining('max_turns_exceeded') as unknown },
      lastMessage: 'Half.',
    });
    expect(dataOf(drafts, 'diagnostic.engine.error')).toMatchObject([
      { message: 'max_turns_exceeded', terminal: true },
    ]);
  });

  test('a terminationReason of another shape is no success', () => {
    for (const terminationReason of [{ code: 'max_turns_exceeded' }, ['timeout'], 7, true]) {
      expect(
        parse('iflow', { stdout: 'Half.\n', stderr: block({ terminationReason }) }).evidence.success,
        JSON.stringify(terminationReason),
      ).toBe(false);
    }
  });

  test('a missing login on stderr is a complaint of kind auth', () => {
    const message =
      'Please set an Auth method in your /home/u/.iflow/settings.json OR specify one of the following env variables\\n';
    expect(parse('iflow', { stderr: `${message}\n` }).evidence).toMatchObject({
      success: false,
      failure: null,
      complaint: { kind: 'auth', message },
    });
  });

  test('an expired login is reported on stdout and is a failure of kind auth', () => {
    const { evidence } = parse('iflow', {
      stdout:
        'iFlow OAuth2 令牌已过期，需要重新认证。\nAn unexpected critical error occurred:\nError: SERVER_OAUTH2_REQUIRED: x\n   ' +
        ' at a (b.js:1:1)\n',
    });
    expect(evidence).toMatchObject({
      success: false,
      complaint: { kind: 'auth', message: 'iFlow OAuth2 令牌已过期，需要重新认证。' },
    });
  });

  test('a question and a done marker may end the text', () => {
    expect(
      parse('iflow', { stdout: 'I need to know.\n{"ask_user":{"prompt":"Which one?"}}\n', stderr: block() }).evidence
        .questions,
    ).toMatchObject([{ prompt: 'Which one?', channel: 'envelope' }]);
    expect(
      parse('iflow', { stdout: 'Ok.\n```json\n{"done":true,"result":[1]}\n```\n', stderr: block() }).evidence.done,
    ).toEqual({ result: [1] });
  });
});

describe('odd bytes', () => {
  test('oddities of stdout are reported once each, and the text is kept', () => {
    const { drafts, evidence } = parse('iflow', {
      stdout: Buffer.concat([
        Buffer.from('\ufeffone\r\n\u001b[1mtwo\u001b[0m\r\n'),
        Buffer.from([0x61, 0xff, 0x00, 0x0a]),
      ]),
      stderr: block(),
    });
    expect(
      warningsOf(drafts)
        .filter((code) => code !== 'STDERR_TEXT')
        .toSorted(),
    ).toEqual(['ANSI_SEQUENCES', 'BYTE_ORDER_MARK', 'CRLF_LINES', 'INVALID_UTF8', 'NUL_BYTES']);
    expect(evidence.lastMessage).toContain('one\n');
  });

  test('stderr has one diagnostic for the turn, and none where the block is all of it', () => {
    const noisy = parse('iflow', { stdout: 'Hello.\n', stderr: `one\ntwo\n\n${block()}` });
    expect(dataOf(noisy.drafts, 'diagnostic.parser.warning')).toMatchObject([{ code: 'STDERR_TEXT', lines: 2 }]);
    expect(noisy.counts).toMatchObject({ units: 1, parsed: 1, fallbacks: 0 });
    expect(warningsOf(parse('iflow', { stdout: 'Hello.\n', stderr: block() }).drafts)).toEqual([]);
  });
});

test('iflow output cut anywhere gives the same drafts', () => {
  const outputs = [
    { stdout: `zwölf 漢字 🚀\n\n${NOISE}\nlast`, stderr: `\nnotice\n\n${block()}more\n` },
    { stdout: `Hello. ${block()}Bye.\n`, stderr: '<Execution Info>\n{\n</Execution Info>\n' },
    { stdout: 'Hello.\n<Execution Info>\n', stderr: '<Execution Info>\n{' },
  ];
  for (const output of outputs) {
    const whole = parse('iflow', output);
    for (const chunkBytes of [1, 3, 50]) {
      const cut = parse('iflow', { ...output, chunkBytes });
      expect(cut.drafts).toEqual(whole.drafts);
      expect(cut.evidence).toEqual(whole.evidence);
    }
  }
});
