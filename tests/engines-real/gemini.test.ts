// The real Gemini CLI against its scripted model: the behaviour that Parley relies on, tested without Parley.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { GEMINI_MODEL } from '../models/offline-config.js';
import { run, sitDown, type Desk, type Ran } from './real-cli.js';

const SESSION = '12345678-0000-4000-8000-000000000001';

function turn(desk: Desk, prompt: string, session: 'new' | 'resumed' = 'new'): Promise<Ran> {
  return run(
    desk,
    [
      '-m',
      GEMINI_MODEL,
      '-o',
      'stream-json',
      '--approval-mode',
      'yolo',
      session === 'new' ? '--session-id' : '--resume',
      SESSION,
    ],
    prompt,
  );
}

function said({ lines }: Ran): string {
  return lines
    .filter((line) => line.type === 'message' && line.role === 'assistant')
    .map((line) => line.content)
    .join('');
}

const ofType = ({ lines }: Ran, type: string) => lines.filter((line) => line.type === type);

test('answers', async () => {
  const ran = await turn(await sitDown('gemini'), 'Say [[answer hello]] and [[utf8]]');
  expect(ran.code).toBe(0);
  expect(ran.lines[0]).toMatchObject({ type: 'init', session_id: SESSION });
  expect(said(ran)).toBe('hello\nGrüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀');
  expect(ran.lines.at(-1)).toMatchObject({ type: 'result', status: 'success' });
});

test('without a model it first asks which one is to answer', async () => {
  const desk = await sitDown('gemini');
  const ran = await run(desk, ['-o', 'stream-json'], '[[answer hello]]');
  expect(said(ran)).toBe('hello');
  expect(desk.model.requests.map(({ path }) => path.replace(/^.*:/, ''))).toEqual([
    'generateContent',
    'streamGenerateContent?alt=sse',
  ]);
});

test('runs a command and changes a file', async () => {
  const desk = await sitDown('gemini');
  const ran = await turn(desk, '[[answer First.]] [[tool echo ran]] [[file made.txt]] [[done {"n":1}]]');
  expect(ran.code).toBe(0);
  expect(ofType(ran, 'tool_use').map((line) => line.tool_name)).toEqual(['run_shell_command', 'write_file']);
  expect(ofType(ran, 'tool_result')).toEqual([
    expect.objectContaining({ status: 'success', output: 'ran' }),
    expect.objectContaining({ status: 'success' }),
  ]);
  expect(existsSync(join(desk.cwd, 'made.txt'))).toBe(true);
  expect(said(ran)).toBe('First.{"done":true,"result":{"n":1}}');
});

test('a new process continues with the whole history', async () => {
  const desk = await sitDown('gemini');
  await turn(desk, 'remember [[answer I will.]]');
  const ran = await turn(desk, 'what was it?', 'resumed');
  expect(ran.code).toBe(0);
  expect(ran.lines[0]).toMatchObject({ type: 'init', session_id: SESSION });
  expect(said(ran)).toBe('You said: what was it?\nEarlier turns: 1.');
  const history = JSON.stringify(desk.model.requests.at(-1)?.body.contents);
  for (const text of ['remember [[answer I will.]]', '{"text":"I will."}']) expect(history).toContain(text);
});

test('asks through the MCP tool and ends; a plain resume sends the result twice and the service refuses', async () => {
  const desk = await sitDown('gemini');
  const ran = await turn(desk, '[[ask Which?|red|blue]] [[done "ok"]]');
  expect(ran.code).toBe(0);
  expect(ofType(ran, 'tool_use')).toEqual([
    expect.objectContaining({
      tool_name: 'mcp_desk_ask_human',
      parameters: { prompt: 'Which?', options: ['red', 'blue'] },
    }),
  ]);
  expect(desk.asked()).toEqual([{ prompt: 'Which?', options: ['red', 'blue'] }]);
  const resumed = await turn(desk, 'blue', 'resumed');
  expect(resumed.code).toBe(400 & 0xff);
  expect(resumed.lines.at(-1)).toMatchObject({
    type: 'result',
    status: 'error',
    error: { message: expect.stringContaining('function response parts') },
  });
});

// The exit code is the status of the service, cut to a byte.
test.each([
  ['http 500', 500 & 0xff, 'Scripted failure 500.'],
  ['http 401', 401 & 0xff, 'Scripted failure 401.'],
  ['http 429', 429 & 0xff, 'Scripted failure 429.'],
  ['http 400', 400 & 0xff, 'Scripted failure 400.'],
  ['cut', 1, 'terminated'],
  ['html', 1, 'Incomplete JSON segment'],
])('[[%s]] fails the turn after one request', async (word, code, message) => {
  const desk = await sitDown('gemini');
  const ran = await turn(desk, `[[${word}]]`);
  expect(ran.code).toBe(code);
  expect(ran.lines.at(-1)).toMatchObject({
    type: 'result',
    status: 'error',
    error: { message: expect.stringContaining(message) },
  });
  expect(desk.model.requests).toHaveLength(1);
});

test('the prompt of a turn that the service failed is lost: the next turn does not know of it', async () => {
  const desk = await sitDown('gemini');
  await turn(desk, '[[answer one]]');
  await turn(desk, 'two [[http 500]]', 'resumed');
  expect(said(await turn(desk, 'three', 'resumed'))).toBe('You said: three\nEarlier turns: 1.');
  expect(JSON.stringify(desk.model.requests.at(-1)?.body.contents)).not.toContain('two');
});

test('a session whose first turn the service failed cannot be resumed', async () => {
  const desk = await sitDown('gemini');
  await turn(desk, '[[http 500]]');
  const ran = await turn(desk, 'go on', 'resumed');
  expect(ran).toMatchObject({ code: 42, stdout: '', stderr: expect.stringContaining('No previous sessions found') });
});

test('[[fail]] and [[empty]] end with exit code 0 and an error', async () => {
  for (const word of ['fail', 'empty']) {
    const ran = await turn(await sitDown('gemini'), `[[${word}]]`);
    expect(ran.code).toBe(0);
    expect(ran.lines.at(-1)).toMatchObject({ type: 'result', status: 'error' });
  }
});
