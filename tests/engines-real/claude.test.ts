// The real Claude Code against its scripted model: the behaviour that Parley relies on, tested without Parley.
import { once } from 'node:events';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { run, sitDown, type Desk, type Ran } from './real-cli.js';

const SESSION = '12345678-0000-4000-8000-000000000001';
const UNKNOWN = '12345678-0000-4000-8000-000000000002';
const WRITE = ['--setting-sources', 'user', '--permission-mode', 'default', '--allowedTools', 'Edit(./**)'];

function turn(desk: Desk, prompt: string, ...options: readonly string[]): Promise<Ran> {
  return run(desk, ['-p', '--output-format', 'stream-json', '--verbose', ...options], prompt);
}

const begin = (desk: Desk, prompt: string) => turn(desk, prompt, '--session-id', SESSION);
const resume = (desk: Desk, prompt: string) => turn(desk, prompt, '--resume', SESSION);
const ofType = ({ lines }: Ran, type: string) => lines.filter((line) => line.type === type);
const wasDenied = ({ lines }: Ran) => lines.some(({ subtype }) => subtype === 'permission_denied');

test('answers, and a new process continues with the whole history', async () => {
  const desk = await sitDown('claude');
  const ran = await begin(desk, 'remember [[answer I will.]] [[utf8]]');
  expect(ran).toMatchObject({ code: 0, stderr: '' });
  expect(ran.lines[0]).toMatchObject({ type: 'system', subtype: 'init', session_id: SESSION });
  expect(ofType(ran, 'assistant').map(({ message }) => message)).toMatchObject([
    { content: [{ type: 'text', text: 'I will.' }] },
    { content: [{ type: 'text', text: 'Grüße 漢字 e\u0301 a\u2028b 👩‍👩‍👧 🚀' }] },
  ]);
  expect(ran.lines.at(-1)).toMatchObject({
    type: 'result',
    subtype: 'success',
    is_error: false,
    terminal_reason: 'completed',
  });
  const next = await resume(desk, 'what was it?');
  expect(next.lines[0]).toMatchObject({ subtype: 'init', session_id: SESSION });
  expect(next.lines.at(-1)).toMatchObject({ result: 'You said: what was it?\nEarlier turns: 1.' });
});

test('a session id that exists is not taken again; one that nobody knows is only in the result', async () => {
  const desk = await sitDown('claude');
  await begin(desk, '[[answer one]]');
  expect(await begin(desk, '[[answer two]]')).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringContaining('is already in use'),
  });
  const ran = await turn(desk, 'go on', '--resume', UNKNOWN);
  expect(ran.code).toBe(1);
  expect(ran.lines).toMatchObject([{ type: 'result', is_error: true, session_id: UNKNOWN }]);
  expect(desk.model.requests).toHaveLength(1);
});

test('a copy of a session gets the id that was chosen for it', async () => {
  const desk = await sitDown('claude');
  await begin(desk, 'one [[answer one]]');
  const fork = ['--resume', SESSION, '--fork-session', '--session-id', UNKNOWN];
  const ran = await turn(desk, 'two [[answer two]]', ...fork);
  expect(ran.lines[0]).toMatchObject({ subtype: 'init', session_id: UNKNOWN });
  expect((await resume(desk, 'three')).lines.at(-1)).toMatchObject({
    result: 'You said: three\nEarlier turns: 1.',
  });
});

test('tokens and cost of the result count all processes of the session', async () => {
  const desk = await sitDown('claude');
  const first = (await begin(desk, '[[answer one]]')).lines.at(-1);
  const second = (await resume(desk, '[[answer two]]')).lines.at(-1);
  const { modelUsage: models } = second as unknown as { modelUsage: Record<string, { inputTokens: number }> };
  expect(Object.values(models)).toMatchObject([{ inputTokens: 40, outputTokens: 20 }]);
  expect(second?.['total_cost_usd']).toBeCloseTo(2 * Number(first?.['total_cost_usd']));
  expect(second?.['usage']).toMatchObject({ input_tokens: 20 });
});

test.each([
  ['http 401', { api_error_status: 401, terminal_reason: 'api_error', subtype: 'success' }],
  ['http 429', { api_error_status: 429, terminal_reason: 'api_error', subtype: 'success' }],
  ['http 400', { api_error_status: 400, terminal_reason: 'api_error', subtype: 'success' }],
  ['http 529', { api_error_status: 529, terminal_reason: 'api_error', subtype: 'success' }],
])('[[%s]] ends with code 1 and a result that names the status', async (word, result) => {
  const ran = await turn(await sitDown('claude'), `[[${word}]]`);
  expect(ran.code).toBe(1);
  expect(ran.lines.at(-1)).toMatchObject({ type: 'result', is_error: true, ...result });
});

test('asks through the MCP tool if it is always loaded and allowed', async () => {
  const desk = await sitDown('claude');
  const mcp = ['--mcp-config', join(desk.home, 'mcp.json'), '--strict-mcp-config'];
  const denied = await turn(desk, '[[ask Which?|red|blue]]', ...mcp);
  expect(wasDenied(denied)).toBe(true);
  expect(desk.asked()).toEqual([]);
  await turn(desk, '[[ask Which?|red|blue]]', ...mcp, '--allowedTools', 'mcp__desk__ask_human');
  expect(desk.asked()).toEqual([{ prompt: 'Which?', options: ['red', 'blue'] }]);
});

test('below full it writes in its folder only, and no file that would configure it', async () => {
  const desk = await sitDown('claude');
  const at = (path: string) => join(desk.cwd, path);
  mkdirSync(at('sub'));
  symlinkSync(desk.home, at('out'));
  for (const [path, isWritten] of [
    ['sub/in.txt', true],
    ['../up.txt', false],
    ['out/linked.txt', false],
    ['.git/hooks/post-commit', false],
    ['.claude/settings.json', false],
    ['.mcp.json', false],
  ] as const) {
    const ran = await turn(desk, `[[patch ${at(path)}]][[answer x]]`, ...WRITE);
    expect([path, existsSync(at(path)), wasDenied(ran)]).toEqual([path, isWritten, !isWritten]);
  }
});

// With another mode, such a call would run.
test.each(['missing', 'refuses', 'garbage', 'silent'])(
  'a hook that is %s leaves the call to the default mode, which denies it',
  async (how) => {
    const server = createServer((_request, response) => {
      if (how === 'refuses') response.writeHead(500).end();
      if (how === 'garbage') response.end('garbage');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const close = () => {
      server.close();
      server.closeAllConnections();
    };
    if (how === 'missing') close();
    else onTestFinished(close);
    const hook = { type: 'http', url: `http://127.0.0.1:${port}/`, timeout: 1 };
    const settings = JSON.stringify({ hooks: { PreToolUse: [{ matcher: '*', hooks: [hook] }] } });
    const desk = await sitDown('claude');
    const options = ['--setting-sources', 'user', '--permission-mode', 'default', '--settings', settings];
    const ran = await turn(desk, '[[tool touch made]][[answer end]]', ...options);
    expect(ran.lines.at(-1)).toMatchObject({ result: 'end', permission_denials: { length: 1 } });
    expect(existsSync(join(desk.cwd, 'made'))).toBe(false);
  },
);

test('in the default mode no command writes, and files outside the folder are not shown', async () => {
  const desk = await sitDown('claude');
  writeFileSync(join(desk.home, 'secret.txt'), 'SECRET');
  const commands = ['touch a', 'echo hi > b', `cat ${join(desk.home, 'secret.txt')}`, 'ls; touch c', 'cat $(touch d)'];
  const ran = await turn(
    desk,
    `${commands.map((command) => `[[tool ${command}]]`).join('')}[[answer end]]`,
    '--setting-sources',
    'user',
    '--permission-mode',
    'default',
  );
  expect(ran.lines.at(-1)).toMatchObject({ result: 'end', permission_denials: { length: commands.length } });
  expect(['a', 'b', 'c', 'd'].filter((name) => existsSync(join(desk.cwd, name)))).toEqual([]);
  expect(ran.stdout).not.toContain('SECRET');
});
