// Turns of the real app-server that ask, are interrupted, run in parallel, or are cut off.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { PeerEndedError, type CodexAppServer, type ServerEvent } from '../../src/app-server/index.js';
import type { JsonObject } from '../../src/kernel/json.js';
import { listMarked } from '../../src/process/process-table.js';
import { seededRandom } from '../support/seeded-random.js';
import {
  commandsOf,
  eventsOf,
  newThread,
  next,
  openDesk,
  paramsOf,
  play,
  turnIn,
  type Desk,
} from './real-app-server.js';

const ASKS = { sandbox: 'workspace-write', approvalPolicy: 'untrusted' } as const;
const APPROVAL = 'item/commandExecution/requestApproval';

// A turn that asks for permission to make a file, up to that question.
async function askForLeave(
  server: CodexAppServer,
  thread: string,
  prompt = '[[tool touch made.txt]] [[answer I go on.]]',
): Promise<ServerEvent & { type: 'request' }> {
  const from = statSync(server.recording.events).size;
  await server.turns.start(thread, prompt);
  const asked = await next(server, thread, APPROVAL, from);
  if (asked.type !== 'request') throw new Error('an approval is a request');
  return asked;
}

const commandIn = (server: CodexAppServer, thread: string): JsonObject | undefined =>
  eventsOf(server, thread)
    .map(({ method, params }) => ({ method, item: (params as JsonObject).item as JsonObject | undefined }))
    .findLast(({ method, item }) => method === 'item/completed' && item?.type === 'commandExecution')?.item;

test('an approval is an event of its own; once accepted, the command runs and the turn continues', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  expect(paramsOf(asked)).toMatchObject({
    threadId: thread,
    command: expect.stringContaining('touch made.txt'),
    cwd: desk.person.cwd,
  });
  expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(false);
  server.respond(asked.id, { decision: 'accept' });
  expect(() => server.respond(asked.id, { decision: 'accept' })).toThrow('waits for an answer');
  expect(turnIn(await next(server, thread, 'turn/completed', asked.to)).status).toBe('completed');
  expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(true);
  expect(JSON.stringify(desk.person.model.requests.at(-1)?.body)).toContain('function_call_output');
});

test('accepted for the session, the same command is not asked for again', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  server.respond(asked.id, { decision: 'acceptForSession' });
  await next(server, thread, 'turn/completed', asked.to);
  expect(turnIn(await play(server, thread, '[[tool touch made.txt]] [[answer Again.]]')).status).toBe('completed');
  expect(eventsOf(server, thread).filter(({ method }) => method === APPROVAL)).toHaveLength(1);
});

test.each([
  { decision: 'decline', turn: 'completed', item: 'declined' },
  { decision: 'cancel', turn: 'interrupted', item: 'declined' },
  { decision: 'bogus', turn: 'completed', item: 'failed' },
])('answered with $decision, the command does not run and the turn is $turn', async ({ decision, turn, item }) => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  server.respond(asked.id, { decision });
  expect(turnIn(await next(server, thread, 'turn/completed', asked.to)).status).toBe(turn);
  expect(commandIn(server, thread)?.status).toBe(item);
  expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(false);
});

test('a refused request does not run the command either', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  server.refuse(asked.id, -32000, 'nobody is there');
  expect(turnIn(await next(server, thread, 'turn/completed', asked.to)).status).toBe('completed');
  expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(false);
});

test('an approval of an interrupted turn cannot be answered any more', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  expect(await server.turns.interrupt(thread)).toBe('ended');
  await next(server, thread, 'serverRequest/resolved', asked.to);
  expect(() => server.respond(asked.id, { decision: 'accept' })).toThrow('waits for an answer');
  expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(false);
});

// Waits for so many events of the thread, or fewer if its command runs.
async function hear(server: CodexAppServer, thread: string, count: number): Promise<void> {
  let heard = 0;
  for await (const event of server.events({ from: server.recordedFrom })) {
    if (heard >= count) return;
    const { threadId, item } = paramsOf(event);
    if (threadId === thread) heard += 1;
    if (threadId === thread && (item as JsonObject | undefined)?.type === 'commandExecution') return;
  }
}

test('an interrupt at any moment leaves neither a turn that hangs nor a command that runs', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const random = seededRandom(7);
  for (let round = 0; round < 10; round += 1) {
    const thread = await newThread(server);
    const { turn } = await server.turns.start(thread, '[[answer Some words first.]] [[tool sleep 600]]');
    await hear(server, thread, random(12));
    const outcome = await server.turns.interrupt(thread);
    expect([round, outcome]).toEqual([round, 'ended']);
    expect(turnIn(await next(server, thread, 'turn/completed'))).toMatchObject({ id: turn.id, status: 'interrupted' });
    // The signal was sent; the kernel may need some time.
    await expect.poll(() => commandsOf(server), { timeout: 5000 }).toEqual([]);
    expect(turnIn(await play(server, thread, '[[answer fine]]')).status).toBe('completed');
  }
  await server.close();
  expect(listMarked().filter(({ mark }) => mark?.includes(desk.taskDir))).toEqual([]);
});

test('twenty threads at once do not mix', async () => {
  const desk = await openDesk();
  const server = await desk.open();
  const threads = await Promise.all(Array.from({ length: 20 }, () => newThread(server)));
  expect(new Set(threads).size).toBe(20);
  const ends = await Promise.all(
    threads.map((thread, index) => play(server, thread, `[[answer I am number ${index}.]]`)),
  );
  for (const [index, end] of ends.entries()) {
    expect(turnIn(end)).toMatchObject({
      status: 'completed',
      items: [{ type: 'agentMessage', text: `I am number ${index}.` }],
    });
    expect(paramsOf(end).threadId).toBe(threads[index]);
  }
});

// A server that is waiting for an answer.
async function openAsking(desk: Desk) {
  const server = await desk.open();
  const thread = await newThread(server, ASKS);
  const asked = await askForLeave(server, thread);
  return { server, thread, asked };
}

describe('a server that is killed', () => {
  test('fails pending and later requests, ends the readers, and reports how it ended', async () => {
    const desk = await openDesk();
    const { server, thread, asked } = await openAsking(desk);
    const reader = server.events();
    const ended = (async () => {
      for await (const event of reader) expect(event).toBeDefined();
      return 'ended';
    })();
    process.kill(server.pid, 'SIGSTOP');
    const waiting = server.threads.list().catch((error: unknown) => error);
    process.kill(server.pid, 'SIGKILL');
    expect(await waiting).toBeInstanceOf(PeerEndedError);
    expect(await server.closed).toEqual({ code: null, signal: 'SIGKILL', error: null });
    expect(await ended).toBe('ended');
    await expect(server.turns.start(thread, 'more')).rejects.toThrow('codex app-server is gone');
    expect(() => server.respond(asked.id, {})).toThrow('codex app-server is gone');
  });

  test('is followed by another process that continues the thread, in which nothing has run', async () => {
    const desk = await openDesk();
    const { server, thread } = await openAsking(desk);
    process.kill(server.pid, 'SIGKILL');
    await server.closed;
    writeFileSync(server.recording.events, '{"torn', { flag: 'a' });
    const again = await desk.open();
    await again.threads.resume(again.sessionThreadId ?? '');
    const asked = await askForLeave(again, thread);
    again.respond(asked.id, { decision: 'decline' });
    await next(again, thread, 'turn/completed', asked.to);
    expect(existsSync(join(desk.person.cwd, 'made.txt'))).toBe(false);
    expect(readFileSync(again.recording.events, 'utf8')).toContain('\n{"torn\n{"id":1,');
  });
});
