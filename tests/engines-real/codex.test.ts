// The real Codex against its scripted model: the behaviour that Parley relies on, tested without Parley.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/kernel/json.js';
import { run, sitDown, type Desk, type Ran } from './real-cli.js';

function turn(desk: Desk, prompt: string, thread?: string): Promise<Ran> {
  const resume = thread === undefined ? [] : ['resume', thread];
  return run(
    desk,
    ['exec', '--json', '--skip-git-repo-check', '-C', desk.cwd, '-s', 'workspace-write', ...resume, '-'],
    prompt,
  );
}

function completed({ lines }: Ran, type: string): JsonObject[] {
  return lines
    .filter((line) => line.type === 'item.completed')
    .map((line) => line.item as JsonObject)
    .filter((item) => item.type === type);
}

const said = (ran: Ran) => completed(ran, 'agent_message').map((item) => item.text);
const threadOf = ({ lines }: Ran) => String(lines[0]?.thread_id);

test('answers', async () => {
  const ran = await turn(await sitDown('codex'), 'Say [[answer hello]] and [[utf8]]');
  expect(ran.code).toBe(0);
  expect(said(ran)).toEqual(['hello', 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀']);
  expect(ran.lines.at(-1)?.type).toBe('turn.completed');
});

test('runs a command and changes a file', async () => {
  const desk = await sitDown('codex');
  const ran = await turn(desk, '[[answer First.]] [[tool echo ran; exit 3]] [[file made.txt]] [[done {"n":1}]]');
  expect(ran.code).toBe(0);
  expect(completed(ran, 'command_execution')).toEqual([
    expect.objectContaining({ aggregated_output: 'ran\n', exit_code: 3, status: 'failed' }),
  ]);
  expect(completed(ran, 'file_change')).toEqual([
    expect.objectContaining({ changes: [{ path: join(desk.cwd, 'made.txt'), kind: 'add' }], status: 'completed' }),
  ]);
  expect(existsSync(join(desk.cwd, 'made.txt'))).toBe(true);
  expect(said(ran)).toEqual(['First.', '{"done":true,"result":{"n":1}}']);
});

test('asks twice by the MCP tool, exits each time, and new processes continue with the whole history', async () => {
  const desk = await sitDown('codex');
  const first = await turn(desk, '[[ask Which?|red|blue]] [[ask Sure?]] [[done "ok"]]');
  expect(first.code).toBe(0);
  expect(completed(first, 'mcp_tool_call')).toEqual([
    expect.objectContaining({
      tool: 'ask_human',
      status: 'completed',
      arguments: { prompt: 'Which?', options: ['red', 'blue'] },
    }),
  ]);
  const second = await turn(desk, 'blue, I think', threadOf(first));
  expect(completed(second, 'mcp_tool_call')).toEqual([
    expect.objectContaining({ arguments: { prompt: 'Sure?', options: [] } }),
  ]);
  const third = await turn(desk, 'yes', threadOf(first));
  expect([threadOf(second), threadOf(third)]).toEqual([threadOf(first), threadOf(first)]);
  expect(said(third)).toEqual(['{"done":true,"result":"ok"}']);
  expect(desk.asked()).toEqual([
    { prompt: 'Which?', options: ['red', 'blue'] },
    { prompt: 'Sure?', options: [] },
  ]);
  const history = JSON.stringify(desk.model.requests.at(-1)?.body.input);
  for (const text of ['[[ask Which?|red|blue]]', 'Question recorded.', 'blue, I think', '"yes"'])
    expect(history).toContain(text);
});

test.each([
  ['http 500', 'high demand'],
  ['http 401', 'unexpected status 401 Unauthorized: Scripted failure 401.'],
  ['http 429', 'exceeded retry limit, last status: 429 Too Many Requests'],
  ['http 400', 'Scripted failure 400.'],
  ['cut', 'stream disconnected before completion'],
  ['html', 'stream disconnected before completion'],
  ['fail', 'this prompt is not answered'],
])('[[%s]] fails the turn after one request, and the next turn continues', async (word, message) => {
  const desk = await sitDown('codex');
  const ran = await turn(desk, `[[${word}]]`);
  expect(ran.code).toBe(1);
  expect(ran.lines.at(-1)).toMatchObject({ type: 'turn.failed', error: { message: expect.stringContaining(message) } });
  expect(desk.model.requests).toHaveLength(1);
  expect(said(await turn(desk, 'go on', threadOf(ran)))).toEqual(['You said: go on\nEarlier turns: 1.']);
});
