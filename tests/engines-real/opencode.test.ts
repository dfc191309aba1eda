// The real OpenCode against its scripted model: the behaviour that Parley relies on, tested without Parley.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/kernel/json.js';
import { endChild, run, sitDown, start, type Desk, type Ran } from './real-cli.js';

// With a title from us, the model receives no request for one.
const argsOf = (desk: Desk, session?: string) => [
  'run',
  '--format',
  'json',
  '--dir',
  desk.cwd,
  ...(session === undefined ? ['--title', 'scripted'] : ['--session', session]),
];
const turn = (desk: Desk, prompt: string, session?: string) => run(desk, argsOf(desk, session), prompt);

const parts = ({ lines }: Ran, type: string) =>
  lines.filter((line) => line.type === type).map((line) => line.part as JsonObject);
const said = (ran: Ran) => parts(ran, 'text').map((part) => part.text);
const sessionOf = ({ lines }: Ran) => String(lines[0]?.sessionID);

test('answers, and asks for a title', async () => {
  const desk = await sitDown('opencode');
  const ran = await run(desk, ['run', '--format', 'json', '--dir', desk.cwd], 'Say [[answer hello]] and [[utf8]]');
  expect(ran.code).toBe(0);
  expect(said(ran)).toEqual(['hello\nGrüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀']);
  expect(parts(ran, 'step_finish').at(-1)?.reason).toBe('stop');
  expect(desk.model.requests).toHaveLength(2);
});

test('runs a command and changes a file', async () => {
  const desk = await sitDown('opencode');
  const ran = await turn(desk, '[[answer First.]] [[tool echo ran; exit 3]] [[file made.txt]] [[done {"n":1}]]');
  expect(ran.code).toBe(0);
  expect(parts(ran, 'tool_use')).toEqual([
    expect.objectContaining({
      tool: 'bash',
      state: expect.objectContaining({
        status: 'completed',
        output: 'ran\n',
        metadata: expect.objectContaining({ exit: 3 }),
      }),
    }),
    expect.objectContaining({ tool: 'write', state: expect.objectContaining({ status: 'completed' }) }),
  ]);
  expect(existsSync(join(desk.cwd, 'made.txt'))).toBe(true);
  expect(said(ran)).toEqual(['First.', '{"done":true,"result":{"n":1}}']);
});

test('asks twice by the MCP tool, exits each time, and new processes continue with the whole history', async () => {
  const desk = await sitDown('opencode');
  const first = await turn(desk, '[[ask Which?|red|blue]] [[ask Sure?]] [[done "ok"]]');
  expect(first.code).toBe(0);
  expect(parts(first, 'tool_use')).toEqual([
    expect.objectContaining({
      tool: 'desk_ask_human',
      state: expect.objectContaining({ status: 'completed', input: { prompt: 'Which?', options: ['red', 'blue'] } }),
    }),
  ]);
  const second = await turn(desk, 'blue, I think', sessionOf(first));
  const third = await turn(desk, 'yes', sessionOf(first));
  expect([sessionOf(second), sessionOf(third)]).toEqual([sessionOf(first), sessionOf(first)]);
  expect(said(third)).toEqual(['{"done":true,"result":"ok"}']);
  expect(desk.asked()).toEqual([
    { prompt: 'Which?', options: ['red', 'blue'] },
    { prompt: 'Sure?', options: [] },
  ]);
  const history = JSON.stringify(desk.model.requests.at(-1)?.body.messages);
  for (const text of ['[[ask Which?|red|blue]]', 'Question recorded.', 'blue, I think', '"yes"'])
    expect(history).toContain(text);
});

test.each([
  // Six requests: it follows the service's hint to retry at once. Without that header it takes over a minute.
  ['http 500 1', 500, 6],
  ['http 429 1', 429, 6],
  ['http 401', 401, 1],
])('[[%s]] fails the turn', async (word, statusCode, requests) => {
  const desk = await sitDown('opencode');
  const ran = await turn(desk, `[[${word}]]`);
  expect(ran.code).toBe(1);
  expect(ran.lines).toEqual([
    expect.objectContaining({
      type: 'error',
      error: expect.objectContaining({ name: 'APIError', data: expect.objectContaining({ statusCode }) }),
    }),
  ]);
  expect(desk.model.requests).toHaveLength(requests);
});

test('[[cut]] is tried again silently', async () => {
  const desk = await sitDown('opencode');
  const child = start(desk, argsOf(desk), '[[cut]]');
  await desk.model.received(2);
  expect(child.exitCode).toBeNull();
  await endChild(child);
});
