// The settings of Codex as the engine of a run: passed in requests and not on its command line, on a scripted server.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { openResidentCodex } from '../../src/app-server/resident-codex.js';
import type { Permission } from '../../src/engines/engine.js';
import type { Conversation, Resident } from '../../src/engines/resident.js';
import { systemClock } from '../../src/kernel/clock.js';
import type { Json, JsonObject } from '../../src/kernel/json.js';
import { systemTimers } from '../../src/process/timers.js';
import { openFakeDesk } from './fake-desk.js';

const FAKE = fileURLToPath(new URL('../support/fake-app-server.mjs', import.meta.url));
const PERMISSIONS: readonly (readonly [Permission, string])[] = [
  ['read-only', 'read-only'],
  ['workspace-write', 'workspace-write'],
  ['full', 'danger-full-access'],
];

interface Opened {
  readonly resident: Resident;
  readonly cwd: string;
  converse(prompt: string, changes?: Partial<Conversation>): Promise<void>;
  sent(method: string): JsonObject[];
  // How it was started, one line each: its arguments, then its environment.
  started(): string;
}

async function open(): Promise<Opened> {
  const { root, taskDir: cwd, home, atEnd } = openFakeDesk();
  const [program, folder, log] = [join(root, 'codex'), join(root, 'run'), join(root, 'started')] as const;
  writeFileSync(
    program,
    `#!/bin/sh\n{ printf '%s\\n' "$@"; env; } > '${log}'\nexec '${process.execPath}' '${FAKE}' "$@"\n`,
    { mode: 0o755 },
  );
  const user = { home, env: { PATH: '/usr/bin:/bin' } };
  const resident = await openResidentCodex(
    {
      program: [program],
      folder,
      home: join(root, 'private'),
      cwd,
      env: { ...user.env, GIVEN: 'x' },
      mark: `test ${root}`,
      signal: new AbortController().signal,
    },
    { user, platform: 'linux-x64', pid: process.pid, clock: systemClock, timers: systemTimers },
  );
  atEnd(() => resident.close());
  return {
    resident,
    cwd,
    converse: (prompt, changes = {}) =>
      resident.converse({ session: null, cwd, permission: 'workspace-write', mode: 'interactive', ...changes }, prompt),
    sent: (method) =>
      readFileSync(join(folder, 'agents/main/runtime/requests.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as JsonObject)
        .filter((line) => line.method === method)
        .map(({ params }) => params as JsonObject),
    started: () => readFileSync(log, 'utf8'),
  };
}

const promptOf = (params: JsonObject): Json => (params['input'] as { text: string }[])[0]?.text ?? null;

describe('permissions', () => {
  test.each(PERMISSIONS)('%s is sent when a thread is started, resumed and forked', async (permission, sandbox) => {
    for (const [method, changes] of [
      ['thread/start', {}],
      ['thread/resume', { session: 'thread-9' }],
      ['thread/fork', { session: 'thread-9', copies: true }],
    ] as const) {
      const { converse, sent, cwd } = await open();
      await converse('plain', { permission, ...changes });
      expect(sent(method), method).toMatchObject([
        { cwd, sandbox, approvalPolicy: 'on-request', approvalsReviewer: 'user' },
      ]);
    }
  });

  test('nobody is asked in an auto run, and there is no tool to ask with', async () => {
    const { converse, sent } = await open();
    await converse('plain', { mode: 'auto', permission: 'read-only' });
    expect(sent('thread/start')).toMatchObject([{ approvalPolicy: 'never', sandbox: 'read-only' }]);
    expect(sent('thread/start')[0]).not.toHaveProperty('dynamicTools');
  });
});

describe('the question tool', () => {
  test('is given to a new thread of an interactive run; a resumed thread keeps its own', async () => {
    const opened = await open();
    await opened.converse('plain', { model: 'gpt-5.5' });
    expect(opened.sent('thread/start')).toMatchObject([
      { model: 'gpt-5.5', dynamicTools: [{ type: 'function', name: 'ask_human', inputSchema: { type: 'object' } }] },
    ]);
    const resumed = await open();
    await resumed.converse('plain', { session: 'thread-9' });
    expect(resumed.sent('thread/resume')[0]).not.toHaveProperty('dynamicTools');
    expect(resumed.sent('thread/resume')[0]).not.toHaveProperty('model');
  });
});

describe('prompts', () => {
  test.each([
    ['300 kB', 'x'.repeat(300_000)],
    ['one that looks like an option', '--yolo'],
    ['a dash', '-'],
    ['one with a NUL character', 'before\0after'],
    ['several lines', 'a\r\nb\n\u2028c'],
  ])('%s arrives whole', async (_, prompt) => {
    const { converse, sent } = await open();
    await converse(prompt);
    expect(sent('turn/start')).toMatchObject([{ threadId: 'thread-1' }]);
    expect(sent('turn/start').map(promptOf)).toEqual([prompt]);
  });

  test('the next one goes to the thread that is open', async () => {
    const { resident, converse, sent } = await open();
    await converse('plain');
    for await (const line of resident.lines(resident.from)) if (line.text.includes('turn/completed')) break;
    await converse('again');
    expect(sent('thread/start')).toHaveLength(1);
    expect(sent('turn/start').map((params) => [params['threadId'], promptOf(params)])).toEqual([
      ['thread-1', 'plain'],
      ['thread-1', 'again'],
    ]);
  });

  test('neither prompt nor model nor permission is in its command line or its environment', async () => {
    const { converse, started } = await open();
    await converse('prompt-marker', { model: 'model-marker', permission: 'full' });
    const lines = started().split('\n');
    expect(lines.slice(0, 5)).toEqual([
      'app-server',
      '-c',
      'features.unbounded_connection_retries=false',
      '-c',
      'check_for_update_on_startup=false',
    ]);
    expect(lines).toContain('GIVEN=x');
    expect(started()).not.toMatch(/prompt-marker|model-marker|danger-full-access/);
  });
});
