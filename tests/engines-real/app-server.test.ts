// `codex app-server` as a library, on the real Codex with the scripted model: what requirement 003 asks for.
import { existsSync, mkdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { buildProtocolTypes } from '../../scripts/generate-app-server-types.mjs';
import { start, type ServerEvent } from '../../src/app-server/index.js';
import type { JsonObject } from '../../src/kernel/json.js';
import {
  commandsOf,
  eventsOf,
  newThread,
  next,
  openDesk,
  paramsOf,
  play,
  readLines,
  sessionOf,
  turnIn,
} from './real-app-server.js';

// The person's text as the model receives it.
function prompts(body: JsonObject | undefined): string[] {
  const input = (body?.input ?? []) as JsonObject[];
  const said = input
    .filter(({ role }) => role === 'user')
    .flatMap(({ content }) => (content as JsonObject[]).map(({ text }) => String(text)));
  return said.filter((text) => text.startsWith('prompt '));
}

test('without codex on PATH and without codexBin the start fails with codex not found', async () => {
  const { person, taskDir } = await openDesk();
  const options = { instance: 'one', taskDir, user: { home: person.home, env: { PATH: person.root } } };
  await expect(start(options)).rejects.toThrow(/^codex not found/);
  await expect(start({ ...options, codexBin: join(person.root, 'nothing') })).rejects.toThrow(/^codex not found/);
});

test('the server is greeted with initialize and clientInfo, then initialized', async () => {
  const desk = await openDesk();
  const server = await desk.open('one', { clientInfo: { name: 'somebody', title: null, version: '7' } });
  expect(server.info.userAgent).toMatch(/^somebody\/0\.166\.0 /);
  expect(server.info.codexHome).toBe(server.codexHome);
  expect(readLines(server.recording.requests)).toEqual([
    {
      id: 1,
      method: 'initialize',
      params: {
        clientInfo: { name: 'somebody', title: null, version: '7' },
        capabilities: { experimentalApi: true, requestAttestation: false },
      },
    },
    { method: 'initialized' },
  ]);
});

test('two instances of a task have isolated homes, each with the login of the user linked in', async () => {
  const desk = await openDesk();
  const login = join(desk.person.home, '.codex', 'auth.json');
  writeFileSync(login, '{"OPENAI_API_KEY":"dummy"}');
  const [one, two] = await Promise.all([desk.open('one'), desk.open('two')]);
  expect([one.codexHome, two.codexHome]).toEqual(
    ['one', 'two'].map((name) => join(desk.taskDir, 'agents', name, 'codex_home')),
  );
  for (const { codexHome } of [one, two]) {
    expect(readlinkSync(join(codexHome, 'auth.json'))).toBe(login);
    expect(statSync(codexHome).mode & 0o777).toBe(0o700);
  }
  const [first, second] = await Promise.all([newThread(one), newThread(two)]);
  await Promise.all([play(one, first, 'prompt one'), play(two, second, 'prompt two')]);
  for (const { body } of desk.person.model.requests) expect(new Set(prompts(body)).size).toBe(1);
  expect((await one.threads.list()).data.map(({ id }) => id)).toEqual([first]);
  await expect(one.threads.resume(second)).rejects.toThrow('no rollout found');
  await expect(desk.open('one')).rejects.toThrow('is in use by process');
  await expect(desk.open('three', { codexHome: one.codexHome })).rejects.toThrow('the home of another instance');
  await expect(desk.open('four', { codexHome: join(desk.person.home, '.codex') })).rejects.toThrow(
    "the user's own home",
  );
});

test('threads are listed, started, resumed in a new process, forked and rolled back', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server);
  for (const prompt of ['prompt one', 'prompt two', 'prompt three']) await play(server, thread, prompt);
  expect((await server.threads.list()).data.map(({ id }) => id)).toEqual([thread]);
  await expect(server.threads.rollback(thread, 4)).rejects.toMatchObject({ code: 'too_few_turns' });
  expect((await server.threads.rollback(thread, 2)).id).toBe(thread);
  await server.close();
  const again = await desk.open();
  expect(again.sessionThreadId).toBe(thread);
  await again.threads.resume(thread);
  const { thread: forked } = await again.threads.fork(thread);
  await play(again, thread, 'prompt four');
  expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt four']);
  await play(again, forked.id, 'prompt two');
  expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt two']);
});

test('a rollback loads a thread that is not loaded', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server);
  for (const prompt of ['prompt one', 'prompt two']) await play(server, thread, prompt);
  await server.close();
  const again = await desk.open();
  await again.threads.rollback(thread, 1);
  await play(again, thread, 'prompt three');
  expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt three']);
});

test('a fork has a new thread id and can be resumed before its first turn', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server);
  await play(server, thread, 'prompt one');
  const { thread: forked } = await server.threads.fork(thread);
  expect(forked.id).not.toBe(thread);
  expect(forked.forkedFromId).toBe(thread);
  await server.close();
  const again = await desk.open();
  const resumed = await again.threads.resume(forked.id);
  expect(resumed.sandbox.type).toBe('dangerFullAccess');
  await play(again, forked.id, 'prompt two');
  expect(prompts(desk.person.model.requests.at(-1)?.body)).toEqual(['prompt one', 'prompt two']);
});

test('a thread resumed in a new process keeps the sandbox, approval policy and folder of its start', async () => {
  const desk = await openDesk();
  const folder = join(desk.person.root, 'elsewhere');
  mkdirSync(folder);
  const server = await desk.open();
  const thread = await newThread(server, { sandbox: 'workspace-write', approvalPolicy: 'untrusted', cwd: folder });
  await play(server, thread, 'prompt one');
  await server.close();
  const again = await desk.open();
  const resumed = await again.threads.resume(thread);
  expect([resumed.sandbox.type, resumed.approvalPolicy, resumed.cwd]).toEqual(['workspaceWrite', 'untrusted', folder]);
  expect(readFileSync(join(again.codexHome, 'config.toml'), 'utf8')).toMatch(
    /elsewhere"\]\s+trust_level = "untrusted"/,
  );
});

test('notifications come while the turn runs, and an interrupt ends the turn and its command', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server);
  const seen: string[] = [];
  const { turn } = await server.turns.start(thread, '[[answer Now.]] [[tool sleep 600]]');
  for await (const event of server.events({ from: server.recordedFrom })) {
    if (event.type !== 'notification') continue;
    seen.push(event.method);
    if (event.method === 'item/started' && (paramsOf(event).item as JsonObject).type === 'commandExecution') break;
  }
  expect(seen).toEqual(expect.arrayContaining(['turn/started', 'item/agentMessage/delta', 'item/completed']));
  await expect(server.turns.start(thread, 'more')).rejects.toMatchObject({ code: 'turn_active' });
  await expect.poll(() => commandsOf(server), { timeout: 20_000 }).toHaveLength(1);
  expect(await server.turns.interrupt(thread)).toBe('ended');
  await expect.poll(() => commandsOf(server), { timeout: 5000 }).toEqual([]);
  const end = await next(server, thread, 'turn/completed');
  expect(turnIn(end)).toMatchObject({ id: turn.id, status: 'interrupted' });
  expect(await server.turns.interrupt(thread)).toBe('none');
  expect(turnIn(await play(server, thread, 'prompt one')).status).toBe('completed');
});

test('requests.jsonl, events.jsonl and stderr.log hold the traffic as it came and grow across processes', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const heard: ServerEvent[] = [];
  const reading = (async () => {
    for await (const event of server.events({ from: server.recordedFrom })) heard.push(event);
  })();
  const thread = await newThread(server);
  await play(server, thread, '[[utf8]] [[tool echo ran]] [[answer done]]');
  await server.close();
  await reading;
  const bytes = readFileSync(server.recording.events);
  expect(heard.map(({ raw }) => `${raw}\n`).join('')).toBe(bytes.toString('utf8'));
  for (const { raw, from, to } of heard) expect(bytes.subarray(from, to).toString('utf8')).toBe(`${raw}\n`);
  expect(heard.filter(({ type }) => type === 'unreadable')).toEqual([]);
  const requests = readLines(server.recording.requests);
  expect(requests.map(({ method }) => method)).toEqual(['initialize', 'initialized', 'thread/start', 'turn/start']);
  const answered = heard.flatMap((event) => (event.type === 'response' ? [event.id] : []));
  expect(answered).toEqual(requests.flatMap(({ id }) => (id === undefined ? [] : [id])));
  for (const path of Object.values(server.recording)) {
    expect(existsSync(path)).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  }
  const again = await desk.open();
  expect(again.recordedFrom).toBe(bytes.length);
  await again.close();
  expect(readFileSync(again.recording.events).subarray(0, bytes.length).equals(bytes)).toBe(true);
});

test('session.json names the thread, the folder, the home and the recordings right after thread/start', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const path = join(desk.taskDir, 'agents', 'one', 'session.json');
  const thread = await newThread(server);
  const content = {
    threadId: thread,
    cwd: desk.person.cwd,
    codexHome: server.codexHome,
    recording: { ...server.recording },
  };
  expect(sessionOf(desk)).toMatchObject({ ...content, stored: false });
  await play(server, thread, 'prompt one');
  expect(sessionOf(desk)).toMatchObject({ ...content, stored: true });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(eventsOf(server, thread).length).toBeGreaterThan(5);
});

test('the types are those of the pinned Codex', () => {
  expect(readFileSync(new URL('../../src/app-server/protocol.ts', import.meta.url), 'utf8')).toBe(buildProtocolTypes());
});
