// The stand-in for `codex app-server`, through the library that talks to the real one: each directive, threads that
// outlive their process, interrupted approvals, and lines of the same form as recordings of the real one.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { start, type CodexAppServer, type ServerEvent } from '../../src/app-server/index.js';
import { codexProbe } from '../../src/engines/codex/probe.js';
import shapes from './app-server/shapes.json' with { type: 'json' };

interface Line {
  readonly id?: number;
  readonly method?: string;
  // The messages on the wire; each test knows which one it needs.
  readonly params: {
    readonly [name: string]: unknown;
    readonly item: Item;
    readonly turn: {
      readonly status: string;
      readonly id: string;
      readonly items: Item[];
      readonly error: { readonly message: string } | null;
    };
  };
}
interface Item {
  readonly [name: string]: unknown;
  readonly type: string;
  readonly id: string;
  readonly status: string;
  readonly text: string;
}
type Reply = (asked: Line) => object | undefined;

const BIN = new URL('bin/codex-app-server-stand-in', import.meta.url).pathname;
const PATH = `${dirname(process.execPath)}:/usr/bin:/bin`;
const ASK_HUMAN = [{ type: 'function', name: 'ask_human', description: 'Asks', inputSchema: { type: 'object' } }];
const decide =
  (decision: unknown): Reply =>
  () => ({ decision });
const tell =
  (text: string): Reply =>
  () => ({ contentItems: [{ type: 'inputText', text }], success: true });
const inputOf = (text: string) => [{ type: 'text', text, text_elements: [] }];
const readLines = (path: string): Line[] =>
  readFileSync(path, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);

const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0).toReversed()) await end();
});

function openDesk() {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'parley-stand-in-')));
  endings.push(() => rmSync(root, { recursive: true, force: true, maxRetries: 5 }));
  const [taskDir, home, log] = [join(root, 'task'), join(root, 'home'), join(root, 'log.jsonl')];
  mkdirSync(taskDir);
  mkdirSync(home);
  return {
    taskDir,
    async open(env: Record<string, string> = {}): Promise<CodexAppServer> {
      const server = await start({
        instance: 'one',
        taskDir,
        codexBin: BIN,
        user: { home, env: { PATH } },
        env: { STAND_IN_LOG: log, ...env },
        unhandled: [],
      });
      endings.push(() => server.close());
      return server;
    },
    logged: (event: string) =>
      readFileSync(log, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line['event'] === event),
    rollouts: () =>
      readdirSync(join(taskDir, 'agents/one/codex_home'), { recursive: true, encoding: 'utf8' })
        .filter((path) => path.includes('rollout-'))
        .map((path) => join(taskDir, 'agents/one/codex_home', path)),
  };
}

const newThread = async (server: CodexAppServer, params = {}): Promise<string> =>
  (await server.threads.start(params)).thread.id;
const lineOf = ({ raw }: ServerEvent): Line => JSON.parse(raw) as Line;

// Reads until the wanted line, and answers earlier requests.
async function readTo(
  server: CodexAppServer,
  events: AsyncIterable<ServerEvent>,
  isIt: (line: Line) => boolean,
  reply: Reply = () => undefined,
): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const event of events) {
    const line = lineOf(event);
    lines.push(line);
    if (isIt(line)) return lines;
    const result = event.type === 'request' ? reply(line) : undefined;
    if (result) server.respond(event, result);
  }
  throw new Error(`the server ended: ${lines.map(({ method }) => method).join(' ')}`);
}

async function play(server: CodexAppServer, thread: string, prompt: string, reply?: Reply): Promise<Line[]> {
  const events = server.events();
  await server.turns.start(thread, prompt);
  return readTo(
    server,
    events,
    ({ method, params }) => method === 'turn/completed' && params['threadId'] === thread,
    reply,
  );
}

// Waits until so many requests are open.
async function playToRequest(server: CodexAppServer, thread: string, prompt: string, count = 1): Promise<Line[]> {
  const events = server.events();
  await server.turns.start(thread, prompt);
  let left = count;
  return (
    await readTo(server, events, ({ method, id }) => method !== undefined && id !== undefined && (left -= 1) === 0)
  ).filter(({ method, id }) => method !== undefined && id !== undefined);
}

const asked = (lines: Line[]): Line[] => lines.filter(({ method, id }) => method !== undefined && id !== undefined);
const completed = (lines: Line[], type: string): Item[] =>
  lines
    .filter(({ method, params }) => method === 'item/completed' && params.item.type === type)
    .map(({ params }) => params.item);
const said = (lines: Line[]): string[] => completed(lines, 'agentMessage').map(({ text }) => text);
const statusOf = (lines: Line[]): string | undefined => lines.at(-1)?.params.turn.status;
const methodsOf = (lines: Line[]): (string | undefined)[] => lines.map(({ method }) => method);

async function openThread(params = {}) {
  const desk = openDesk();
  const server = await desk.open();
  return { desk, server, thread: await newThread(server, params) };
}

// Kills it while it waits, and continues with another process.
async function killAndResume(
  desk: ReturnType<typeof openDesk>,
  server: CodexAppServer,
  thread: string,
): Promise<CodexAppServer> {
  process.kill(server.pid, 'SIGKILL');
  await server.closed;
  const again = await desk.open();
  await again.threads.resume(thread);
  return again;
}

describe('directives', () => {
  test('[[say]], [[reason]] and [[done]] are items, the message in pieces', async () => {
    const { server, thread } = await openThread();
    const lines = await play(
      server,
      thread,
      'go [[reason about it]][[say one two three four five six]][[done {"a":[[1]]}]]',
    );
    expect(completed(lines, 'userMessage')[0]).toMatchObject({
      content: [{ type: 'text', text: expect.stringContaining('go [[reason') }],
    });
    expect(completed(lines, 'reasoning')).toMatchObject([{ summary: ['about it'] }]);
    expect(said(lines)).toEqual(['one two three four five six', '{"done":true,"result":{"a":[[1]]}}']);
    expect(
      lines
        .filter(({ method }) => method === 'item/agentMessage/delta')
        .map(({ params }) => params['delta'])
        .join(''),
    ).toBe(said(lines).join(''));
    expect(lines.at(-1)?.params.turn).toMatchObject({
      status: 'completed',
      itemsView: 'summary',
      items: [{ text: said(lines)[1] }],
    });
  });

  test('a prompt without directives is answered with its beginning', async () => {
    const { server, thread } = await openThread();
    expect(said(await play(server, thread, `${'x'.repeat(70)} [[nothing here]]`))).toEqual([`Done: ${'x'.repeat(60)}`]);
  });

  test('[[run]] runs in the folder of the thread and is logged', async () => {
    const { desk, server, thread } = await openThread();
    mkdirSync(join(desk.taskDir, 'sub'));
    const sub = await newThread(server, { cwd: join(desk.taskDir, 'sub') });
    expect(completed(await play(server, sub, '[[run pwd]]'), 'commandExecution')).toMatchObject([
      { command: '/bin/bash -lc pwd', status: 'completed', exitCode: 0, aggregatedOutput: `${desk.taskDir}/sub\n` },
    ]);
    const lines = await play(server, thread, '[[run echo out; echo err >&2; exit 2]]');
    expect(completed(lines, 'commandExecution')).toMatchObject([
      { status: 'failed', exitCode: 2, aggregatedOutput: 'out\nerr\n' },
    ]);
    expect(desk.logged('command')).toMatchObject([
      { command: 'pwd', thread: sub, pid: server.pid },
      { command: 'echo out; echo err >&2; exit 2', thread },
    ]);
    expect(desk.logged('start')).toMatchObject([
      {
        pid: server.pid,
        cwd: desk.taskDir,
        argv: expect.arrayContaining(['app-server', '-c']),
        env: { CODEX_HOME: server.codexHome, PARLEY_TURN: expect.any(String) },
      },
    ]);
  });

  test.each([
    ['accept', 'completed', 'completed', 1],
    ['decline', 'declined', 'completed', 0],
    ['cancel', 'declined', 'interrupted', 0],
    ['whatever', 'failed', 'completed', 0],
  ])('[[approve]] that is answered with %s ends %s, its turn %s', async (decision, status, turn, ran) => {
    const { desk, server, thread } = await openThread();
    const lines = await play(server, thread, '[[approve echo yes >> ran]]', decide(decision));
    expect(asked(lines)).toMatchObject([
      {
        id: 0,
        method: 'item/commandExecution/requestApproval',
        params: {
          command: "/bin/bash -lc 'echo yes >> ran'",
          cwd: desk.taskDir,
          commandActions: [{ command: 'echo yes >> ran' }],
        },
      },
    ]);
    expect(completed(lines, 'commandExecution')).toMatchObject([{ status }]);
    expect(statusOf(lines)).toBe(turn);
    expect(existsSync(join(desk.taskDir, 'ran'))).toBe(ran === 1);
    const order = methodsOf(lines);
    expect(order.indexOf('serverRequest/resolved')).toBeGreaterThan(
      order.indexOf('item/commandExecution/requestApproval'),
    );
  });

  test('an approval that is refused with an error is not run, and the turn continues', async () => {
    const { server, thread } = await openThread();
    const events = server.events();
    await server.turns.start(thread, '[[approve touch no]][[say after]]');
    const lines = await readTo(
      server,
      events,
      ({ method }) => method === 'turn/completed',
      ({ id }) => void server.refuse(id ?? -1, -32601, 'no'),
    );
    expect(completed(lines, 'commandExecution')).toMatchObject([{ status: 'failed', exitCode: null }]);
    expect(said(lines)).toEqual(['after']);
  });

  test('acceptForSession applies to the same command in this process', async () => {
    const { desk, server, thread } = await openThread();
    const lines = await play(
      server,
      thread,
      '[[approve echo 1 >> ran]][[approve echo 1 >> ran]][[approve echo 2 >> ran]]',
      decide('acceptForSession'),
    );
    expect(asked(lines).map(({ id }) => id)).toEqual([0, 1]);
    expect(readFileSync(join(desk.taskDir, 'ran'), 'utf8')).toBe('1\n1\n2\n');
  });

  test('[[patch]] shows the change, then asks; [[hiddenpatch]] only asks', async () => {
    const { desk, server, thread } = await openThread();
    const file = join(desk.taskDir, 'a.txt');
    const added = await play(server, thread, '[[patch a.txt hello world]]', decide('accept'));
    expect(readFileSync(file, 'utf8')).toBe('hello world\n');
    const start = added.find(({ method, params }) => method === 'item/started' && params.item.type === 'fileChange');
    expect(start?.params.item).toMatchObject({
      status: 'inProgress',
      changes: [{ path: file, kind: { type: 'add' }, diff: 'hello world\n' }],
    });
    expect(asked(added)).toMatchObject([
      { method: 'item/fileChange/requestApproval', params: { itemId: start?.params.item.id } },
    ]);
    const hidden = await play(server, thread, '[[hiddenpatch a.txt other]]', decide('decline'));
    expect(hidden.some(({ method, params }) => method === 'item/started' && params.item.type === 'fileChange')).toBe(
      false,
    );
    expect(asked(hidden)).toHaveLength(1);
    expect(completed(hidden, 'fileChange')).toMatchObject([
      { status: 'declined', changes: [{ kind: { type: 'update' }, diff: '@@ -1,1 +1,1 @@\n-hello world\n+other\n' }] },
    ]);
    expect(readFileSync(file, 'utf8')).toBe('hello world\n');
  });

  test('[[hiddenpatch0]] asks under the same item id each time', async () => {
    const { server, thread } = await openThread();
    const lines = await play(server, thread, '[[hiddenpatch0 a.txt one]][[hiddenpatch0 a.txt two]]', decide('decline'));
    expect(asked(lines).map(({ params }) => params.itemId)).toEqual(['call_stand_in_0', 'call_stand_in_0']);
    expect(lines.some(({ method, params }) => method === 'item/started' && params.item.type === 'fileChange')).toBe(
      false,
    );
  });

  test('[[permissions]] asks for the network', async () => {
    const { server, thread } = await openThread();
    const lines = await play(server, thread, '[[permissions]][[permissions]]', ({ id }) => ({
      permissions: id === 0 ? { network: { enabled: true } } : {},
      scope: 'turn',
    }));
    expect(asked(lines)[0]).toMatchObject({
      method: 'item/permissions/requestApproval',
      params: { permissions: { network: { enabled: true }, fileSystem: null } },
    });
    expect(said(lines)).toEqual(['Permissions: granted', 'Permissions: refused']);
  });

  test('[[parallel]] has two approvals waiting at once, the second first', async () => {
    const { desk, server, thread } = await openThread();
    const requests = await playToRequest(server, thread, '[[parallel touch a | touch b]]', 2);
    expect(requests).toMatchObject([
      { id: 0, params: { command: "/bin/bash -lc 'touch b'" } },
      { id: 1, params: { command: "/bin/bash -lc 'touch a'" } },
    ]);
    const events = server.events();
    server.respond(0, { decision: 'decline' });
    server.respond(1, { decision: 'accept' });
    const lines = await readTo(server, events, ({ method }) => method === 'turn/completed');
    expect(
      completed(lines, 'commandExecution')
        .map(({ status }) => status)
        .toSorted(),
    ).toEqual(['completed', 'declined']);
    expect(readdirSync(desk.taskDir)).toContain('a');
    expect(readdirSync(desk.taskDir)).not.toContain('b');
  });

  test('[[parallel]] of which one is cancelled ends the turn and withdraws the other', async () => {
    const { server, thread } = await openThread();
    await playToRequest(server, thread, '[[parallel touch a | touch b]][[say kept]]', 2);
    const events = server.events();
    server.respond(1, { decision: 'cancel' });
    const lines = await readTo(server, events, ({ method }) => method === 'turn/completed');
    expect(statusOf(lines)).toBe('interrupted');
    expect(server.openRequests()).toEqual([]);
    expect(said(await play(server, thread, 'go on'))).toEqual(['kept']);
  });

  test('[[ask]] calls the tool of the client, ends its turn on request, and continues in the next', async () => {
    const { server, thread } = await openThread({ dynamicTools: ASK_HUMAN });
    const lines = await play(
      server,
      thread,
      '[[ask Which one? | red | blue]][[run echo later]]',
      tell('Question recorded. End your turn now and wait.'),
    );
    expect(asked(lines)).toMatchObject([
      {
        method: 'item/tool/call',
        params: { namespace: null, tool: 'ask_human', arguments: { prompt: 'Which one?', options: ['red', 'blue'] } },
      },
    ]);
    expect(completed(lines, 'dynamicToolCall')).toMatchObject([
      { tool: 'ask_human', status: 'completed', success: true },
    ]);
    expect(completed(lines, 'commandExecution')).toEqual([]);
    expect(statusOf(lines)).toBe('completed');
    const next = await play(server, thread, 'blue [[say first]]');
    expect(next.filter(({ method }) => method === 'item/completed').map(({ params }) => params.item.type)).toEqual([
      'userMessage',
      'agentMessage',
      'commandExecution',
    ]);
  });

  test('[[ask]] says an answer that is given at once, and fails where the tool is not offered', async () => {
    const { server, thread } = await openThread({ dynamicTools: ASK_HUMAN });
    expect(said(await play(server, thread, '[[ask Why?]][[say on]]', tell('because')))).toEqual([
      'Answer: because',
      'on',
    ]);
    const lines = await play(server, await newThread(server), '[[ask Why?]]');
    expect(lines.at(-1)?.params.turn).toMatchObject({
      status: 'failed',
      error: { message: 'unsupported call: ask_human' },
    });
  });

  test('[[input]] and [[form]] print the reply', async () => {
    const { server, thread } = await openThread();
    const lines = await play(server, thread, '[[input Which? | red | blue]][[form Who?]]', ({ method }) =>
      method === 'item/tool/requestUserInput'
        ? { answers: { q1: { answers: ['blue'] } } }
        : { action: 'accept', content: { name: 'Ann', sure: true }, _meta: null },
    );
    expect(asked(lines)).toMatchObject([
      {
        method: 'item/tool/requestUserInput',
        params: { questions: [{ id: 'q1', question: 'Which?', options: [{ label: 'red' }, { label: 'blue' }] }] },
      },
      {
        method: 'mcpServer/elicitation/request',
        params: {
          mode: 'form',
          message: 'Who?',
          requestedSchema: {
            type: 'object',
            properties: { name: { type: 'string' }, sure: { type: 'boolean' } },
            required: ['name'],
          },
        },
      },
    ]);
    expect(said(lines)).toEqual(['Answer: blue', 'Form: accept {"name":"Ann","sure":true}']);
  });

  test('[[form1]] has one field', async () => {
    const { server, thread } = await openThread();
    const lines = await play(server, thread, '[[form1 Delete it?]]', () => ({
      action: 'decline',
      content: null,
      _meta: null,
    }));
    expect(asked(lines)).toMatchObject([
      {
        params: {
          message: 'Delete it?',
          requestedSchema: {
            type: 'object',
            properties: { confirm: { type: 'boolean', title: 'Really?' } },
            required: ['confirm'],
          },
        },
      },
    ]);
    expect(said(lines)).toEqual(['Form: decline null']);
  });

  test('[[noise]] is so many notifications, [[fail]] fails the turn and not the thread', async () => {
    const { server, thread } = await openThread();
    const lines = await play(server, thread, '[[noise 500]][[fail no more]]');
    expect(lines.filter(({ method }) => method === 'thread/status/changed').length).toBeGreaterThanOrEqual(500);
    expect(lines.at(-1)?.params.turn).toMatchObject({ status: 'failed', error: { message: 'no more' } });
    expect(lines.find(({ method }) => method === 'error')?.params).toMatchObject({ willRetry: false });
    expect(statusOf(await play(server, thread, '[[say again]]'))).toBe('completed');
  });

  test('[[exit]] and [[kill]] end the process after the earlier output', async () => {
    const desk = openDesk();
    for (const [word, end] of [
      ['exit 7', { code: 7, signal: null }],
      ['kill', { code: null, signal: 'SIGKILL' }],
    ] as const) {
      const server = await desk.open();
      const events = server.events();
      await server.turns.start(await newThread(server), `[[say last words]][[${word}]]`);
      expect(await server.closed).toMatchObject(end);
      const lines: Line[] = [];
      for await (const event of events) lines.push(lineOf(event));
      expect(said(lines)).toEqual(['last words']);
    }
  });
});

describe('interrupts', () => {
  test('[[hang]] says nothing until it is interrupted', async () => {
    const { server, thread } = await openThread();
    const events = server.events();
    await server.turns.start(thread, '[[hang]][[say never]]');
    expect(await server.turns.interrupt(thread)).toBe('ended');
    const lines = await readTo(server, events, ({ method }) => method === 'turn/completed');
    expect(statusOf(lines)).toBe('interrupted');
    expect(said(await play(server, thread, 'go on'))).toEqual(['Done: go on']);
  });

  test('[[work]] is left running by an interrupt, and ended when terminals are cleaned', async () => {
    const { server, thread } = await openThread();
    const events = server.events();
    await server.turns.start(thread, '[[work 300000]]');
    await readTo(
      server,
      server.events({ from: server.recordedFrom }),
      ({ method, params }) => method === 'item/started' && params.item.type === 'commandExecution',
    );
    expect(await server.turns.interrupt(thread)).toBe('ended');
    const lines = await readTo(
      server,
      events,
      ({ method, params }) => method === 'item/completed' && params.item.type === 'commandExecution',
    );
    expect(lines.at(-1)?.params.item).toMatchObject({ status: 'failed', exitCode: -1 });
    expect(methodsOf(lines).indexOf('turn/completed')).toBeLessThan(lines.length - 1);
  });

  test('[[work]] that is not interrupted ends by itself', async () => {
    const { server, thread } = await openThread();
    expect(completed(await play(server, thread, '[[work 10]]'), 'commandExecution')).toMatchObject([
      { status: 'completed', exitCode: 0 },
    ]);
  });

  test('an approval that waits is withdrawn, a late answer changes nothing, and the next turn asks again', async () => {
    const { desk, server, thread } = await openThread();
    const events = server.events();
    const [request] = await playToRequest(server, thread, '[[approve touch ran]][[say after]]');
    expect(await server.turns.interrupt(thread)).toBe('ended');
    const lines = await readTo(server, events, ({ method }) => method === 'turn/completed');
    expect(lines.find(({ method }) => method === 'serverRequest/resolved')?.params).toEqual({
      threadId: thread,
      requestId: request?.id,
    });
    expect(server.openRequests()).toEqual([]);
    expect(() => server.respond(request?.id ?? -1, { decision: 'accept' })).toThrow();
    const next = await play(server, thread, 'The user approved.', decide('accept'));
    expect(asked(next)).toMatchObject([{ id: 1, params: { command: request?.params['command'] } }]);
    expect(said(next)).toEqual(['after']);
    expect(desk.logged('command')).toHaveLength(1);
  });

  test('a second start in a turn steers it, as turn/steer does', async () => {
    const { server, thread } = await openThread();
    const events = server.events();
    const { turn } = await server.turns.start(thread, '[[input Wait?]]');
    await readTo(
      server,
      server.events({ from: server.recordedFrom }),
      ({ method }) => method === 'item/tool/requestUserInput',
    );
    expect(await server.request('turn/start', { threadId: thread, input: inputOf('[[say more]]') })).toMatchObject({
      turn: { id: turn.id },
    });
    expect(
      await server.request('turn/steer', { threadId: thread, expectedTurnId: turn.id, input: inputOf('[[say most]]') }),
    ).toEqual({ turnId: turn.id });
    server.respond(0, { answers: { q1: { answers: ['no'] } } });
    const lines = await readTo(server, events, ({ method }) => method === 'turn/completed');
    expect(said(lines)).toEqual(['Answer: no', 'more', 'most']);
    expect(completed(lines, 'userMessage')).toHaveLength(3);
    await expect(
      server.request('turn/steer', { threadId: thread, expectedTurnId: turn.id, input: [] }),
    ).rejects.toMatchObject({ code: -32600, message: expect.stringContaining('no active turn to steer') });
    await expect(server.request('turn/interrupt', { threadId: thread, turnId: turn.id })).rejects.toThrow(
      'no active turn to interrupt',
    );
  });
});

describe('threads', () => {
  test('a thread is stored with its first turn and continues in another process', async () => {
    const { desk, server, thread } = await openThread({ dynamicTools: ASK_HUMAN });
    expect(desk.rollouts()).toEqual([]);
    expect(thread).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7/);
    await play(server, thread, 'one [[ask Go on?]][[say later]]', tell('Recorded. End your turn.'));
    expect(desk.rollouts()).toEqual([
      expect.stringMatching(new RegExp(`/sessions/\\d{4}/\\d\\d/\\d\\d/rollout-.*-${thread}\\.jsonl$`)),
    ]);
    expect(await server.close()).toMatchObject({ code: 0 });
    const again = await desk.open();
    expect((await again.threads.list()).data).toMatchObject([
      { id: thread, status: { type: 'notLoaded' }, preview: expect.stringContaining('one') },
    ]);
    await expect(again.request('turn/start', { threadId: thread, input: [] })).rejects.toThrow(
      `thread not found: ${thread}`,
    );
    const { thread: resumed } = await again.threads.resume(thread, { excludeTurns: false });
    expect(resumed.turns).toMatchObject([
      { status: 'completed', items: [{ type: 'userMessage' }, { type: 'dynamicToolCall' }, { type: 'agentMessage' }] },
    ]);
    expect(said(await play(again, thread, 'yes [[ask And?]]', tell('then')))).toEqual(['Answer: then', 'later']);
    expect(
      await again.request('thread/turns/list', {
        threadId: thread,
        limit: 1,
        sortDirection: 'desc',
        itemsView: 'notLoaded',
      }),
    ).toMatchObject({ data: [{ status: 'completed', items: [] }], nextCursor: '1' });
  });

  test('with STAND_IN_RESUME=no nothing is stored, and a thread continues only in its own process', async () => {
    const desk = openDesk();
    const server = await desk.open({ STAND_IN_RESUME: 'no' });
    const thread = await newThread(server);
    await playToRequest(server, thread, '[[approve touch ran]][[say later]]');
    await server.turns.interrupt(thread);
    expect(said(await play(server, thread, 'declined'))).toEqual(['All right, I leave it.', 'later']);
    expect(desk.rollouts()).toEqual([]);
    await expect(server.threads.resume(thread)).rejects.toMatchObject({
      code: -32600,
      message: expect.stringContaining(`no rollout found for thread id ${thread}`),
    });
    await server.close();
    const again = await desk.open({ STAND_IN_RESUME: 'no' });
    await expect(again.threads.resume(thread)).rejects.toThrow(`no rollout found for thread id ${thread}`);
  });

  test('a fork has the history, another id, and is stored at once', async () => {
    const { desk, server, thread } = await openThread();
    await expect(server.threads.fork(thread)).rejects.toThrow('no rollout found');
    const [first] = [await play(server, thread, '[[say one]]'), await play(server, thread, '[[say two]]')];
    const { thread: forked } = await server.threads.fork(thread, { excludeTurns: false });
    expect(forked).toMatchObject({ forkedFromId: thread, turns: [{ status: 'completed' }, { status: 'completed' }] });
    expect(forked.id).not.toBe(thread);
    const { thread: short } = await server.threads.fork(thread, {
      excludeTurns: false,
      lastTurnId: first?.at(-1)?.params.turn.id ?? '',
    });
    expect(short.turns).toHaveLength(1);
    await server.close();
    const again = await desk.open();
    expect((await again.threads.resume(forked.id, { excludeTurns: false })).thread.turns).toHaveLength(2);
    expect(said(await play(again, forked.id, '[[say three]]'))).toEqual(['three']);
  });

  test('two threads at once keep to themselves', async () => {
    const { server, thread } = await openThread();
    const other = await newThread(server);
    const events = server.events();
    await Promise.all([
      server.turns.start(thread, '[[approve echo A]]'),
      server.turns.start(other, '[[approve echo B]]'),
    ]);
    let ended = 0;
    const lines = await readTo(
      server,
      events,
      ({ method }) => method === 'turn/completed' && (ended += 1) === 2,
      ({ params }) => ({ decision: params['threadId'] === other ? 'decline' : 'accept' }),
    );
    const of = (id: string): Item[] =>
      completed(
        lines.filter(({ params }) => params?.['threadId'] === id),
        'commandExecution',
      );
    expect(of(thread)).toMatchObject([{ status: 'completed', aggregatedOutput: 'A\n' }]);
    expect(of(other)).toMatchObject([{ status: 'declined' }]);
  });
});

describe('approvals that were cut off', () => {
  test('the same command is asked for again in a new process and runs once; the old call was aborted', async () => {
    const { desk, server, thread } = await openThread();
    const [request] = await playToRequest(server, thread, '[[approve echo yes >> ran]][[say after]]');
    const again = await killAndResume(desk, server, thread);
    expect(desk.logged('command')).toEqual([]);
    const { data } = (await again.request('thread/turns/list', { threadId: thread, itemsView: 'full' })) as unknown as {
      data: { status: string; items: Item[] }[];
    };
    expect(data).toMatchObject([{ status: 'interrupted', items: [{ type: 'userMessage' }] }]);
    const history = readFileSync(desk.rollouts()[0] ?? '', 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { payload: object }).payload);
    expect(history).toContainEqual({
      type: 'function_call_output',
      call_id: request?.params['itemId'],
      output: 'aborted',
    });
    const lines = await play(again, thread, 'The user approved. [[say told]]', decide('accept'));
    expect(asked(lines)).toMatchObject([
      { id: 0, params: { command: request?.params['command'], cwd: request?.params['cwd'] } },
    ]);
    expect(asked(lines)[0]?.params['itemId']).not.toBe(request?.params['itemId']);
    expect(said(lines)).toEqual(['told', 'after']);
    expect(readFileSync(join(desk.taskDir, 'ran'), 'utf8')).toBe('yes\n');
    expect(desk.logged('command')).toHaveLength(1);
    expect(asked(await play(again, thread, 'more'))).toEqual([]);
  });

  test('cut off again and again, it is asked again and again', async () => {
    const { desk, server, thread } = await openThread();
    await playToRequest(server, thread, '[[approve echo yes]][[say after]]');
    const second = await killAndResume(desk, server, thread);
    await playToRequest(second, thread, 'approved');
    const third = await killAndResume(desk, second, thread);
    expect(said(await play(third, thread, 'approved', decide('accept')))).toEqual(['after']);
  });

  test('after a decline it skips the command and continues', async () => {
    const { desk, server, thread } = await openThread();
    await playToRequest(server, thread, '[[approve touch ran]][[say after]]');
    const again = await killAndResume(desk, server, thread);
    const lines = await play(again, thread, 'The user declined: touch ran.');
    expect(asked(lines)).toEqual([]);
    expect(said(lines)).toEqual(['All right, I leave it.', 'after']);
  });

  test.each([
    ['[[approvechanged touch a || touch b]]', 'approved', 'touch b'],
    ['[[approve touch a]]', 'approved [[change touch c]]', 'touch c'],
    ['[[approve touch a]]', 'approved [[change]]', 'touch a # changed'],
  ])('after %s and the note "%s" it asks for %s', async (first, next, command) => {
    const { desk, server, thread } = await openThread();
    expect(await playToRequest(server, thread, first)).toMatchObject([
      { params: { commandActions: [{ command: 'touch a' }] } },
    ]);
    const again = await killAndResume(desk, server, thread);
    expect(asked(await play(again, thread, next, decide('accept')))).toMatchObject([
      { params: { commandActions: [{ command }] } },
    ]);
  });

  test('a patch and two commands at once are asked for again as well', async () => {
    const { desk, server, thread } = await openThread();
    await playToRequest(server, thread, '[[patch p.txt text]]');
    const second = await killAndResume(desk, server, thread);
    await play(second, thread, 'approved', decide('accept'));
    expect(readFileSync(join(desk.taskDir, 'p.txt'), 'utf8')).toBe('text\n');
    await playToRequest(second, thread, '[[parallel echo 1 | echo 2]]', 2);
    const third = await killAndResume(desk, second, thread);
    const lines = await play(third, thread, 'approved', decide('accept'));
    expect(asked(lines).map(({ params }) => (params['commandActions'] as { command: string }[])[0]?.command)).toEqual([
      'echo 2',
      'echo 1',
    ]);
  });
});

describe('the program', () => {
  test('it ends with its stdin, also while somebody is asked or a command runs', async () => {
    for (const prompt of ['[[approve touch x]]', '[[run echo $$ > pid; exec sleep 300]]']) {
      const { desk, server, thread } = await openThread();
      const events = server.events();
      await server.turns.start(thread, prompt);
      await readTo(
        server,
        events,
        ({ method, params }) => method === 'item/started' && params.item.type === 'commandExecution',
      );
      expect(await server.close()).toEqual({ code: 0, signal: null, error: null });
      expect(desk.rollouts()).toHaveLength(1);
    }
  });

  test('it refuses the same requests as the real one, with the same code, and skips invalid messages', async () => {
    const root = openDesk();
    const child = spawn(BIN, ['app-server'], {
      env: { PATH, CODEX_HOME: root.taskDir },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const id = '01a1e067-0000-74e1-a108-53aba51f6e9e';
    const sent = [
      { id: 1, method: 'thread/list', params: {} },
      { id: 2, method: 'initialize', params: { clientInfo: { name: 'x', version: '1' } } },
      { id: 3, method: 'initialize', params: { clientInfo: { name: 'x', version: '1' } } },
      { id: 4, method: 'no/such', params: {} },
      { id: 5, method: 'thread/start', params: { cwd: 5 } },
      { id: 6, method: 'turn/start', params: {} },
      { id: 7, method: 'thread/start' },
      { id: 8, method: 'turn/start', params: { threadId: id, input: [] } },
      { id: 9, method: 'turn/start', params: { threadId: 'nope', input: [] } },
      { id: 10, method: 'thread/resume', params: { threadId: id } },
      { id: 11, method: 'thread/backgroundTerminals/clean', params: { threadId: id } },
      { id: 999, result: {} },
    ];
    child.stdin.end(`not JSON\n[]\n{"foo":1}\n${sent.map((line) => JSON.stringify(line)).join('\n')}\n`);
    const chunks: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    const [code] = (await once(child, 'close')) as [number];
    const lines = Buffer.concat(chunks)
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { id?: number; error?: { code: number; message: string } });
    const refused = new Map(lines.flatMap((line) => (line.error ? [[line.id, line.error] as const] : [])));
    expect(code).toBe(0);
    expect([...refused.values()].every((error) => error.code === -32600)).toBe(true);
    expect([...refused].map(([at, { message }]) => [at, message])).toEqual([
      [1, 'Not initialized'],
      [3, 'Already initialized'],
      [4, expect.stringMatching(/^Invalid request: unknown variant `no\/such`, expected one of `initialize`/)],
      [5, 'Invalid request: invalid type: integer `5`, expected a string'],
      [6, 'Invalid request: missing field `threadId`'],
      [7, 'Invalid request: missing field `params`'],
      [8, `thread not found: ${id}`],
      [9, expect.stringMatching(/^invalid thread id: /)],
      [10, `no rollout found for thread id ${id}`],
      [11, 'thread/backgroundTerminals/clean requires experimentalApi capability'],
    ]);
  });

  test('it is found by the probe, with and without resume', () => {
    const env = { PATH };
    expect(codexProbe.parseVersion(execFileSync(BIN, [...codexProbe.versionArgs], { env, encoding: 'utf8' }))).toBe(
      codexProbe.provedVersion,
    );
    const args = [...(codexProbe.resume?.args ?? [])];
    expect(execFileSync(BIN, args, { env, encoding: 'utf8' })).toMatch(codexProbe.resume?.shows ?? /^$/);
    const without = spawnSync(BIN, args, { env: { ...env, STAND_IN_RESUME: 'no' }, encoding: 'utf8' });
    expect(without.status).toBe(0);
    expect(without.stdout).not.toMatch(codexProbe.resume?.shows ?? /^/);
    expect(spawnSync(BIN, ['exec'], { env }).status).toBe(2);
  });
});

// Skipped: members that depend on settings or history.
const LEAVES = new Set(['turns', 'readStates', 'threadSettings', 'codexErrorInfo', 'arguments', 'sandbox']);

function pathsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((entry) => pathsOf(entry, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = path === '' ? name : `${path}.${name}`;
    return LEAVES.has(name) ? at : [at].concat(pathsOf(inner, at));
  });
}

test('its lines have the fields of the real ones, no more and no less', async () => {
  const { desk, server, thread } = await openThread();
  await play(
    server,
    thread,
    '[[reason x]][[say y]][[run echo z]][[approve touch a]][[patch b.txt c]][[input Which? | d]]',
    ({ method }) => (method === 'item/tool/requestUserInput' ? { answers: {} } : { decision: 'accept' }),
  );
  await play(server, thread, '[[approve touch a]]', decide('cancel'));
  await play(server, thread, '[[fail e]]');
  await server.turns.start(thread, '[[hang]]');
  await server.turns.interrupt(thread);
  await server.threads.list();
  await server.threads.fork(thread, { excludeTurns: false });
  await expect(server.request('no/such')).rejects.toThrow();
  await server.close();
  const again = await desk.open();
  await again.threads.resume(thread, { excludeTurns: false });
  await again.close();

  // From recordings of Codex 0.166.0: the paths in every line of a kind, and those that only some have.
  const known = shapes as Record<string, { always: string[]; sometimes: string[] }>;
  const seen = new Set<string>();
  // The ids are the same in both processes.
  const requests = readLines(server.recording.requests).filter(
    ({ id, method }) => id !== undefined && method !== undefined,
  );
  for (const line of readLines(server.recording.events)) {
    const isAnswer = line.id !== undefined && line.method === undefined;
    const [request] = isAnswer
      ? requests.splice(
          requests.findIndex(({ id }) => id === line.id),
          1,
        )
      : [];
    const label = labelOf(line, request?.method);
    const shape = known[label];
    if (!shape) continue;
    seen.add(label);
    const paths = new Set(pathsOf(line));
    expect([label, shape.always.filter((path) => !paths.has(path))]).toEqual([label, []]);
    expect([
      label,
      [...paths].filter((path) => !shape.always.includes(path) && !shape.sometimes.includes(path)),
    ]).toEqual([label, []]);
  }
  expect(Object.keys(known).filter((label) => !seen.has(label))).toEqual([]);
});

function labelOf(line: Line, requested: string | undefined): string {
  if (line.method === 'turn/completed') return `turn/completed ${line.params.turn.status}`;
  if (line.method !== undefined) return line.params?.item ? `${line.method} ${line.params.item.type}` : line.method;
  return 'error' in line ? 'refusal' : `result of ${requested}`;
}
