// Turns and their traps, on a scripted server: what the real one does only sometimes, it does each time.
import { expect, test } from 'vitest';
import { openFakeDesk, paramsSent, readTo, sent, threadIn, TIMEOUT_MS } from './fake-desk.js';

test('an interrupt is sent when the turn has begun, not before', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  const { turn } = await server.turns.start(thread, 'late');
  const interrupted = server.turns.interrupt(thread);
  await server.threads.list();
  expect(sent(server, 'turn/interrupt')).toEqual([]);
  await server.request('test/started', { threadId: thread });
  expect(await interrupted).toBe('ended');
  expect(paramsSent(server, 'turn/interrupt')).toEqual({ threadId: thread, turnId: turn.id });
});

test('an interrupt ends the commands of the turn after the turn', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'long');
  expect(await server.turns.interrupt(thread)).toBe('ended');
  expect(sent(server).map(({ method }) => method).slice(-2)).toEqual(['turn/interrupt', 'thread/backgroundTerminals/clean']);
});

test('an interrupt that is never answered is over when the turn is', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'mute');
  expect(await server.turns.interrupt(thread)).toBe('ended');
  expect(await server.turns.interrupt(thread)).toBe('none');
  expect(sent(server, 'turn/interrupt')).toHaveLength(1);
});

test('an interrupt of a turn that does not end fails in time, and the turn still counts as active', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'deaf');
  await readTo(server, 'turn/started');
  const interrupted = expect(server.turns.interrupt(thread)).rejects.toMatchObject({ code: 'turn_not_ended' });
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await interrupted;
  await expect(server.turns.start(thread, 'plain')).rejects.toMatchObject({ code: 'turn_active' });
});

test('a server that cannot end the commands of a turn is interrupted all the same', async () => {
  const server = await openFakeDesk().open({ fake: 'old' });
  const thread = await threadIn(server);
  await server.turns.start(thread, 'long');
  expect(await server.turns.interrupt(thread)).toBe('ended');
});

test('a second turn is refused while one is asked for or on, and never reaches the server', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  const first = server.turns.start(thread, 'long');
  await expect(server.turns.start(thread, 'more')).rejects.toMatchObject({ code: 'turn_active' });
  await first;
  await expect(server.turns.start(thread, 'more')).rejects.toMatchObject({ code: 'turn_active' });
  await expect(server.threads.rollback(thread, 1)).rejects.toMatchObject({ code: 'turn_active' });
  await server.turns.start(await threadIn(server), 'plain');
  await server.turns.interrupt(thread);
  await server.turns.start(thread, 'plain');
  expect(sent(server, 'turn/start')).toHaveLength(3);
});

test.each(['end first', 'plain', 'refused'])('after a turn of the kind "%s" the thread is free', async (prompt) => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, prompt).catch((error: Error) => expect(error.message).toBe('no'));
  await server.threads.list();
  expect((await server.turns.start(thread, 'plain')).turn.status).toBe('inProgress');
});

test('a turn that is not answered in time fails; if it begins all the same, the thread is not free', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  const failed = expect(server.turns.start(thread, 'unanswered')).rejects.toThrow(`turn/start was not answered within ${TIMEOUT_MS} ms`);
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await failed;
  await server.request('test/started', { threadId: thread });
  await expect(server.turns.start(thread, 'plain')).rejects.toMatchObject({ code: 'turn_active' });
  expect(await server.turns.interrupt(thread)).toBe('ended');
});

test('a request of the server with the id 0 is an event and is answered once', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'asks');
  const asked = (await readTo(server, 'item/commandExecution/requestApproval')).at(-1);
  expect(asked).toMatchObject({ type: 'request', id: 0, params: { threadId: thread, command: 'rm' } });
  expect(() => server.respond('0', {})).toThrow('waits for an answer');
  server.respond(0, { decision: 'decline' });
  expect(() => server.refuse(0, 1, 'late')).toThrow('waits for an answer');
  const answered = (await readTo(server, 'serverRequest/answered')).at(-1);
  expect(answered).toMatchObject({ params: { id: 0, result: { decision: 'decline' } } });
});
