// Threads on a scripted server: the requests that open them and roll turns back, on new and old servers.
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SandboxPolicy } from '../../src/app-server/index.js';
import { openFakeDesk, paramsSent, sent, threadIn, TIMEOUT_MS } from './fake-desk.js';

const OPTIONS = {
  cwd: '/',
  sandbox: 'workspace-write',
  approvalPolicy: 'never',
  approvalsReviewer: 'auto_review',
} as const;

test('by default a thread is read-only, asks, and works in the folder of the instance', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  await server.threads.start();
  expect(paramsSent(server, 'thread/start')).toEqual({
    cwd: desk.taskDir,
    sandbox: 'read-only',
    approvalPolicy: 'on-request',
    approvalsReviewer: 'user',
  });
  await server.threads.start({ ...OPTIONS, model: 'm' });
  expect(paramsSent(server, 'thread/start')).toEqual({ ...OPTIONS, model: 'm' });
});

test('a resume sends sandbox, policy and folder of the start, from memory and from session.json', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const { thread } = await server.threads.start(OPTIONS);
  await server.turns.start(thread.id, 'plain');
  await server.threads.resume(thread.id);
  expect(paramsSent(server, 'thread/resume')).toEqual({ threadId: thread.id, excludeTurns: true, ...OPTIONS });
  await server.close();
  const again = await desk.open();
  expect(again.sessionThreadId).toBe(thread.id);
  await again.threads.resume(thread.id);
  expect(paramsSent(again, 'thread/resume')).toEqual({ threadId: thread.id, excludeTurns: true, ...OPTIONS });
  await again.threads.resume(thread.id, { sandbox: 'read-only' });
  expect(paramsSent(again, 'thread/resume')).toMatchObject({ ...OPTIONS, sandbox: 'read-only' });
  await again.threads.resume('unknown');
  expect(paramsSent(again, 'thread/resume')).toMatchObject({
    cwd: desk.taskDir,
    sandbox: 'read-only',
    approvalPolicy: 'on-request',
  });
});

test('settings of a turn apply to a resume; settings of a refused turn do not', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const { thread } = await server.threads.start(OPTIONS);
  await server.turns.start(thread.id, 'plain', {
    cwd: desk.home,
    approvalPolicy: 'on-request',
    sandboxPolicy: { type: 'readOnly', networkAccess: false },
  });
  await server.threads.list();
  await expect(server.turns.start(thread.id, 'refused', { cwd: '/tmp' })).rejects.toThrow('no');
  await server.close();
  const again = await desk.open();
  await again.threads.resume(thread.id);
  expect(paramsSent(again, 'thread/resume')).toMatchObject({
    cwd: desk.home,
    approvalPolicy: 'on-request',
    sandbox: 'read-only',
  });
});

test('a fork takes the settings of its thread with it and is kept at once', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const { thread } = await server.threads.start(OPTIONS);
  await server.turns.start(thread.id, 'plain');
  await server.threads.list();
  const { thread: forked } = await server.threads.fork(thread.id, { lastTurnId: 'turn-1' });
  expect(paramsSent(server, 'thread/fork')).toEqual({
    threadId: thread.id,
    lastTurnId: 'turn-1',
    excludeTurns: true,
    ...OPTIONS,
  });
  const session = JSON.parse(readFileSync(join(desk.taskDir, 'agents/one/session.json'), 'utf8')) as object;
  expect(session).toMatchObject({ threadId: thread.id, threads: { [forked.id]: OPTIONS } });
});

test('a server that opens another thread than it was asked for is not believed', async () => {
  const server = await openFakeDesk().open({ fake: 'confused' });
  const thread = await threadIn(server);
  await expect(server.threads.resume(thread)).rejects.toMatchObject({ code: 'unexpected_answer' });
  await expect(server.threads.fork(thread)).rejects.toMatchObject({ code: 'unexpected_answer' });
});

test.each([
  [1, 'turn-5'],
  [2, 'turn-4'],
  [5, 'turn-1'],
])('a rollback of %i of five turns reverts to before %s', async (numTurns, beforeTurnId) => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  for (let turn = 0; turn < 5; turn += 1) {
    await server.turns.start(thread, 'plain');
    await server.threads.list();
  }
  expect((await server.threads.rollback(thread, numTurns)).id).toBe(thread);
  expect(paramsSent(server, 'thread/revert')).toEqual({ threadId: thread, beforeTurnId });
  await expect(server.threads.rollback(thread, 6)).rejects.toMatchObject({ code: 'too_few_turns' });
  for (const bad of [0, -1, 1.5, Number.NaN])
    await expect(server.threads.rollback(thread, bad)).rejects.toMatchObject({ code: 'bad_options' });
  expect(sent(server, 'thread/rollback')).toEqual([]);
});

test('a rollback on an old server is thread/rollback', async () => {
  const server = await openFakeDesk().open({ fake: 'old' });
  const thread = await threadIn(server);
  expect((await server.threads.rollback(thread, 2)).id).toBe(thread);
  expect(paramsSent(server, 'thread/rollback')).toEqual({ threadId: thread, numTurns: 2 });
});

test('a rollback of a thread that is not loaded loads it first', async () => {
  const server = await openFakeDesk().open({ fake: 'old' });
  await server.threads.rollback('elsewhere', 1);
  expect(sent(server).map(({ method }) => method)).toEqual([
    'initialize',
    'initialized',
    'thread/resume',
    'thread/turns/list',
    'thread/rollback',
  ]);
});

test('a rollback uses thread/rollback where thread/revert is unsupported', async () => {
  const server = await openFakeDesk().open({ fake: 'old revert-refused' });
  const thread = await threadIn(server);
  expect((await server.threads.rollback(thread, 2)).id).toBe(thread);
  expect(paramsSent(server, 'thread/rollback')).toEqual({ threadId: thread, numTurns: 2 });
});

test('a rollback that no method can do is refused for the first reason', async () => {
  const server = await openFakeDesk().open({ fake: 'revert-refused' });
  const thread = await threadIn(server);
  await server.turns.start(thread, 'plain');
  await server.threads.list();
  await expect(server.threads.rollback(thread, 1)).rejects.toThrow('only supports paginated threads');
});

// The first may have succeeded: a second method would revert as many turns again.
test('a rollback that failed inside the server is not tried by another method', async () => {
  const server = await openFakeDesk().open({ fake: 'revert-fails' });
  const thread = await threadIn(server);
  await server.turns.start(thread, 'plain');
  await server.threads.list();
  await expect(server.threads.rollback(thread, 1)).rejects.toThrow('internal error');
  expect(sent(server, 'thread/rollback')).toEqual([]);
});

test('session.json is there after thread/start, and names no thread to resume before its first turn', async () => {
  const desk = openFakeDesk();
  const path = join(desk.taskDir, 'agents/one/session.json');
  const server = await desk.open();
  const [first, second] = [await threadIn(server), await threadIn(server)];
  const content = {
    instance: 'one',
    cwd: desk.taskDir,
    codexHome: server.codexHome,
    recording: { ...server.recording },
  };
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ ...content, threadId: second, stored: false });
  expect(server.sessionThreadId).toBeNull();
  await server.turns.start(first, 'plain');
  await server.threads.list();
  await threadIn(server);
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ ...content, threadId: first, stored: true });
  await server.close();
  expect((await desk.open()).sessionThreadId).toBe(first);
});

test('session.json says when the first turn has begun, and one that cannot be read is as none', async () => {
  const desk = openFakeDesk();
  const path = join(desk.taskDir, 'agents/one/session.json');
  const server = await desk.open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'late');
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ threadId: thread, stored: false });
  await server.request('test/started', { threadId: thread });
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({
    instance: 'one',
    threadId: thread,
    cwd: desk.taskDir,
    codexHome: server.codexHome,
    recording: { ...server.recording },
  });
  await server.close();
  writeFileSync(path, '{"threadId":5,"threads":{"a":{"cwd":1}}}');
  expect((await desk.open()).sessionThreadId).toBeNull();
});

test('a thread that Codex does not store is not that of session.json', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const kept = await threadIn(server);
  await server.turns.start(kept, 'plain');
  const { thread } = await server.threads.start({ ephemeral: true });
  await server.turns.start(thread.id, 'plain');
  await server.threads.list();
  expect(server.sessionThreadId).toBe(kept);
});

const OPEN: SandboxPolicy = { type: 'dangerFullAccess' };
const CLOSED: SandboxPolicy = { type: 'readOnly', networkAccess: false };
const WORK: SandboxPolicy = {
  type: 'workspaceWrite',
  writableRoots: [],
  networkAccess: false,
  excludeTmpdirEnvVar: false,
  excludeSlashTmp: false,
};
const NET: SandboxPolicy = { ...WORK, networkAccess: true };

test.each<[SandboxPolicy, object, object]>([
  [OPEN, { sandboxPolicy: CLOSED }, { sandboxPolicy: CLOSED }],
  [CLOSED, { sandboxPolicy: OPEN }, { sandboxPolicy: CLOSED }],
  [OPEN, { sandboxPolicy: WORK }, { sandboxPolicy: WORK }],
  [WORK, { sandboxPolicy: OPEN }, { sandboxPolicy: WORK }],
  [WORK, { sandboxPolicy: NET }, { sandboxPolicy: CLOSED }],
  [OPEN, { permissions: ':read-only' }, { permissions: ':read-only' }],
  [CLOSED, { permissions: 'mine' }, { sandboxPolicy: CLOSED }],
  [OPEN, { permissions: 'mine' }, { sandboxPolicy: CLOSED }],
])('of %j and %j, when it is not known which is in force, the stricter counts', async (first, then, counts) => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'plain', { sandboxPolicy: first, approvalPolicy: 'on-request' });
  await server.threads.list();
  const failed = expect(
    server.turns.start(thread, 'unanswered', { ...then, approvalPolicy: 'never', approvalsReviewer: 'auto_review' }),
  ).rejects.toThrow('was not answered');
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await failed;
  await server.close();
  const again = await desk.open();
  await again.threads.resume(thread);
  await again.turns.start(thread, 'plain');
  expect(paramsSent(again, 'turn/start')).toEqual({
    threadId: thread,
    input: expect.anything(),
    cwd: desk.taskDir,
    approvalPolicy: 'untrusted',
    approvalsReviewer: 'user',
    ...counts,
  });
});

test('a folder has one name, whatever links, dots and slashes lead there', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  mkdirSync(join(desk.taskDir, 'real'));
  symlinkSync('real', join(desk.taskDir, 'link'));
  for (const [cwd, real] of [
    ['link/', 'real'],
    ['./link/../real', 'real'],
    ['link/not/there/', 'real/not/there'],
  ] as const) {
    await server.threads.start({ cwd });
    expect(paramsSent(server, 'thread/start')).toMatchObject({ cwd: join(desk.taskDir, real) });
    expect(readFileSync(join(server.codexHome, 'config.toml'), 'utf8')).toContain(
      `[projects."${join(desk.taskDir, real)}"]\ntrust_level = "untrusted"`,
    );
  }
});
