// The life cycle of a scripted server: its recordings, its readers, and that no process or file lock remains.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { AppServerError, PeerEndedError, type ServerEvent } from '../../src/app-server/index.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { listMarked, readRow } from '../../src/process/process-table.js';
import { systemTimers, type Timers } from '../../src/process/timers.js';
import { breakDisk } from '../support/failing-disk.js';
import { openFakeDesk, readTo, sent, threadIn, TIMEOUT_MS } from './fake-desk.js';

const leftOf = (root: string): unknown[] => listMarked().filter(({ mark }) => mark?.includes(root));
const HASTY: Timers = { set: (ms, fire) => systemTimers.set(Math.min(ms, 100), fire) };

test('a server that does not answer the greeting is ended', async () => {
  const desk = openFakeDesk();
  const failed = expect(desk.open({ fake: 'hangs' })).rejects.toMatchObject({
    code: 'not_started',
    message: expect.stringContaining('initialize was not answered'),
  });
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await failed;
  expect(leftOf(desk.root)).toEqual([]);
});

test('a server that dies at the greeting is reported with its exit code and where its stderr is', async () => {
  const desk = openFakeDesk();
  await expect(desk.open({ fake: 'dies' })).rejects.toMatchObject({
    code: 'not_started',
    message: expect.stringMatching(/exit code 3.*stderr\.log/),
  });
  expect(readFileSync(join(desk.taskDir, 'agents/one/runtime/stderr.log'), 'utf8')).toBe('fake app-server\n');
});

test('the process has its own home, the folder, and nothing else of the environment', async () => {
  const desk = openFakeDesk();
  const server = await desk.open({ env: { FAKE: '', EXTRA: 'y' } });
  const { env, argv, cwd } = (await server.request('test/environment')) as {
    env: JsonObject;
    argv: string[];
    cwd: string;
  };
  expect(env).toMatchObject({ CODEX_HOME: join(desk.taskDir, 'agents/one/codex_home'), EXTRA: 'y' });
  expect(env).not.toHaveProperty('SECRET_OF_MINE');
  expect(argv[0]).toBe('app-server');
  expect(cwd).toBe(desk.taskDir);
});

test('unreadable lines become events in their place, and the conversation continues', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'garbage');
  const events = await readTo(server, 'turn/completed');
  expect(events.slice(-6).map(({ type, raw }) => [type, raw.slice(0, 12)])).toEqual([
    ['unreadable', 'not JSON'],
    ['unreadable', '[1]'],
    ['response', '{"id":77,"re'],
    ['unreadable', ''],
    ['unreadable', '{"id":{},"me'],
    ['notification', '{"method":"t'],
  ]);
  const bytes = readFileSync(server.recording.events);
  for (const { raw, from, to } of events) expect(bytes.subarray(from, to).toString().trimEnd()).toBe(raw);
});

async function count(events: AsyncIterable<ServerEvent>): Promise<number> {
  let seen = 0;
  for await (const event of events) {
    if (event.type === 'notification' && event.method === 'flood') seen += 1;
  }
  return seen;
}

test('a stalled reader delays neither the server nor another reader, and misses nothing', async () => {
  const server = await openFakeDesk().open();
  const slow = server.events();
  const flood = server.request('test/flood', { count: 20_000 });
  expect((await slow.next()).value).toMatchObject({ method: 'flood', params: { n: 0 } });
  await flood;
  const quick = count(server.events({ from: server.recordedFrom }));
  await server.close();
  expect(await quick).toBe(20_000);
  expect(await count(slow)).toBe(19_999);
});

test('a reader that waits is ended by its signal', async () => {
  const server = await openFakeDesk().open();
  const stop = new AbortController();
  const waiting = server.events({ signal: stop.signal }).next();
  await server.threads.list();
  expect((await waiting).value).toMatchObject({ type: 'response' });
  const reader = server.events({ signal: stop.signal });
  const next = reader.next();
  stop.abort();
  expect(await next).toEqual({ done: true, value: undefined });
});

test('a waiting reader ends at once when return is called', async () => {
  const server = await openFakeDesk().open();
  const reader = server.events();
  const next = reader.next();
  expect(await reader.return()).toEqual({ done: true, value: undefined });
  expect(await next).toEqual({ done: true, value: undefined });
});

test('the death of the server fails pending requests, emits its partial line, and ends the readers', async () => {
  const server = await openFakeDesk().open();
  const events: ServerEvent[] = [];
  const reading = (async () => {
    for await (const event of server.events()) events.push(event);
  })();
  const waiting = server.request('test/silence').catch((error: unknown) => error);
  const killing = server.request('test/die').catch((error: unknown) => error);
  for (const error of await Promise.all([waiting, killing])) expect(error).toBeInstanceOf(PeerEndedError);
  expect(await server.closed).toEqual({ code: 7, signal: null, error: null });
  await reading;
  expect(events).toMatchObject([{ type: 'unreadable', raw: '{"id":5,"resu' }]);
  await expect(server.threads.list()).rejects.toBeInstanceOf(PeerEndedError);
  expect(await server.close()).toEqual(await server.closed);
});

test('a closed server takes no request, from the moment of the call', async () => {
  const server = await openFakeDesk().open();
  const closing = server.close();
  await expect(server.threads.list()).rejects.toMatchObject({ code: 'closed' });
  expect(await closing).toEqual({ code: 0, signal: null, error: null });
  expect(sent(server, 'thread/list')).toEqual([]);
});

test('a server that ignores the end of its input and SIGTERM is killed', async () => {
  const desk = openFakeDesk();
  const server = await desk.open({
    fake: 'stubborn',
    requestTimeoutMs: 30_000,
    timers: { set: (ms, fire) => (ms === 30_000 ? systemTimers : HASTY).set(ms, fire) },
  });
  expect(await server.close()).toEqual({ code: null, signal: 'SIGKILL', error: null });
  expect(leftOf(desk.root)).toEqual([]);
});

test('processes that the server started in a session of their own are ended with it', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const { pid } = (await server.request('test/child')) as { pid: number };
  expect(readRow(pid)).not.toBeNull();
  await server.close();
  expect(readRow(pid)).toBeNull();
  expect(leftOf(desk.root)).toEqual([]);
});

test('a recording that cannot be written ends the server, and says why', async () => {
  const desk = openFakeDesk();
  mkdirSync(join(desk.taskDir, 'agents/one/runtime'), { recursive: true });
  const disk = await breakDisk(join(desk.taskDir, 'agents/one/runtime/events.jsonl'), {
    at: 2,
    times: Number.POSITIVE_INFINITY,
    how: 'ENOSPC',
  });
  await expect(desk.open())
    .rejects.toThrow('ENOSPC')
    .finally(() => disk.restore());
  expect(leftOf(desk.root)).toEqual([]);
});

test.each(['events.jsonl', 'requests.jsonl', 'stderr.log'])(
  'a link in the place of %s is not written through',
  async (name) => {
    const desk = openFakeDesk();
    mkdirSync(join(desk.taskDir, 'agents/one/runtime'), { recursive: true });
    writeFileSync(join(desk.root, 'elsewhere'), 'as it was');
    symlinkSync(join(desk.root, 'elsewhere'), join(desk.taskDir, 'agents/one/runtime', name));
    await expect(desk.open()).rejects.toThrow('is not a regular file');
    expect(readFileSync(join(desk.root, 'elsewhere'), 'utf8')).toBe('as it was');
    expect(leftOf(desk.root)).toEqual([]);
  },
);

test('an instance has one owner at a time, also of many who come at once, and is free when it is closed', async () => {
  const desk = openFakeDesk();
  const starts = await Promise.allSettled(Array.from({ length: 5 }, () => desk.open()));
  const [server, ...others] = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  expect(others).toEqual([]);
  for (const start of starts) if (start.status === 'rejected') expect(start.reason).toMatchObject({ code: 'in_use' });
  await server?.close();
  expect(readdirSync(join(desk.taskDir, 'agents/one')).toSorted()).toEqual(['codex_home', 'lock.db', 'runtime']);
  await (await desk.open()).close();
  await expect(desk.open({ fake: 'dies' })).rejects.toMatchObject({ code: 'not_started' });
  await desk.open();
});

test.each(['4194305 1\n', '', 'nonsense'])(
  'a dead owner (%j) holds no lock, and processes it left running are ended',
  async (owner) => {
    const desk = openFakeDesk();
    const path = join(desk.taskDir, 'agents/one');
    mkdirSync(path, { recursive: true });
    writeFileSync(join(path, 'owner'), owner);
    const orphan = spawn('sleep', ['600'], {
      env: { ...process.env, PARLEY_TURN: `app-server ${path}` },
      stdio: 'ignore',
    });
    const exited = once(orphan, 'exit');
    await desk.open();
    expect((await exited)[1]).toMatch(/^SIG(?:TERM|KILL)$/);
    expect(readFileSync(join(path, 'owner'), 'utf8')).toMatch(new RegExp(`^${process.pid}\n`));
  },
);

test('a session.json that cannot be read fails the start before anything runs, and the instance is free', async () => {
  const desk = openFakeDesk();
  const path = join(desk.taskDir, 'agents/one/session.json');
  mkdirSync(path, { recursive: true });
  await expect(desk.open()).rejects.toMatchObject({
    code: 'bad_options',
    message: expect.stringContaining('session.json cannot be read'),
  });
  expect(leftOf(desk.root)).toEqual([]);
  rmdirSync(path);
  await desk.open();
});

test.each(['', '.', '..', 'a/b', 'a b', `${'x'.repeat(65)}`])('the instance %j is refused', async (instance) => {
  await expect(openFakeDesk().open({ instance })).rejects.toBeInstanceOf(AppServerError);
});

test('files are for the user alone, and settings that are no TOML are named', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  await server.close();
  for (const path of Object.values(server.recording)) expect(statSync(path).mode & 0o777).toBe(0o600);
  for (const folder of ['agents/one', 'agents/one/runtime', 'agents/one/codex_home'])
    expect(statSync(join(desk.taskDir, folder)).mode & 0o777).toBe(0o700);
  mkdirSync(join(desk.home, '.codex'));
  writeFileSync(join(desk.home, '.codex/config.toml'), 'not = = toml');
  await expect(desk.open({ instance: 'two' })).rejects.toThrow('cannot be read as TOML');
});

test('the package offers the library by its name', () => {
  const program =
    "import('parley-agents/codex-app-server').then((library) => console.log(Object.keys(library).sort().join(' ')))";
  const printed = execFileSync(process.execPath, ['-e', program], {
    cwd: new URL('../..', import.meta.url),
    encoding: 'utf8',
  });
  expect(printed.trim()).toBe('AppServerError JsonRpcError PeerEndedError RequestTimeoutError start');
});

test('after close nothing is written: a folder that is removed then stays removed', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'plain');
  await readTo(server, 'turn/completed');
  // It starts with other settings, and the response that would confirm them is missing: the stored file is made
  // stricter when the server has exited.
  const failed = expect(server.turns.start(thread, 'unanswered', { approvalPolicy: 'never' })).rejects.toBeInstanceOf(
    PeerEndedError,
  );
  await server.request('test/started', { threadId: thread });
  const session = join(desk.taskDir, 'agents/one/session.json');
  const stored = (): unknown =>
    (JSON.parse(readFileSync(session, 'utf8')) as { threads: Record<string, { approvalPolicy: string }> }).threads[
      thread
    ]?.approvalPolicy;
  expect(stored()).toBe('never');
  await server.close();
  expect(stored()).toBe('untrusted');
  rmSync(desk.taskDir, { recursive: true });
  await failed;
  expect(existsSync(desk.taskDir)).toBe(false);
});
