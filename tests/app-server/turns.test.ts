// Turns on a scripted server, including failures that the real one shows only sometimes.
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
  expect(
    sent(server)
      .map(({ method }) => method)
      .slice(-2),
  ).toEqual(['turn/interrupt', 'thread/backgroundTerminals/clean']);
});

test('an unanswered interrupt resolves when the turn ends', async () => {
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

test('a server that cannot end the commands of a turn is still interrupted', async () => {
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

test('a turn that is not answered in time fails; if it still starts, the thread is busy', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  const failed = expect(server.turns.start(thread, 'unanswered')).rejects.toThrow(
    `turn/start was not answered within ${TIMEOUT_MS} ms`,
  );
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await failed;
  await expect(server.turns.start(thread, 'plain')).rejects.toMatchObject({ code: 'turn_active' });
  const interrupted = server.turns.interrupt(thread);
  await server.threads.list();
  expect(sent(server, 'turn/interrupt')).toEqual([]);
  await server.request('test/started', { threadId: thread });
  expect(await interrupted).toBe('ended');
  expect((await server.turns.start(thread, 'plain')).turn.status).toBe('inProgress');
});

test('an interrupt of an unanswered turn fails, because the turn may still start', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  const thread = await threadIn(server);
  const failed = expect(server.turns.start(thread, 'unanswered')).rejects.toThrow('was not answered');
  const interrupted = expect(server.turns.interrupt(thread)).rejects.toMatchObject({ code: 'turn_not_ended' });
  await desk.simulated.armed(TIMEOUT_MS);
  desk.simulated.advance(TIMEOUT_MS);
  await Promise.all([failed, interrupted]);
});

test('a refused interrupt resolves when the server reports the turn as ended', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  await server.turns.start(thread, 'forgotten');
  expect(await server.turns.interrupt(thread)).toBe('ended');
  expect((await server.turns.start(thread, 'plain')).turn.status).toBe('inProgress');
});

test('a thread that is rolled back takes neither a turn nor another rollback', async () => {
  const server = await openFakeDesk().open();
  const thread = await threadIn(server);
  for (let turn = 0; turn < 2; turn += 1) {
    await server.turns.start(thread, 'plain');
    await server.threads.list();
  }
  const rolledBack = server.threads.rollback(thread, 1);
  await expect(server.threads.rollback(thread, 1)).rejects.toMatchObject({ code: 'turn_active' });
  await expect(server.turns.start(thread, 'plain')).rejects.toMatchObject({ code: 'turn_active' });
  await rolledBack;
  expect(sent(server, 'thread/revert')).toHaveLength(1);
  await server.turns.start(thread, 'plain');
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

test('a question of an earlier process does not answer one of this', async () => {
  const desk = openFakeDesk();
  const one = await desk.open();
  await one.turns.start(await threadIn(one), 'asks');
  const old = (await readTo(one, 'item/commandExecution/requestApproval')).at(-1);
  await one.close();
  const two = await desk.open();
  await two.turns.start(await threadIn(two), 'asks');
  const asked = (await readTo(two, 'item/commandExecution/requestApproval')).at(-1);
  if (old?.type !== 'request' || asked?.type !== 'request') throw new Error('an approval is a request');
  expect([old.id, old.raw]).toEqual([asked.id, asked.raw]);
  expect(old.from).toBeLessThan(two.recordedFrom);
  expect(() => two.respond(old, { decision: 'accept' })).toThrow(expect.objectContaining({ code: 'old_request' }));
  expect(() => two.refuse(old, 1, 'no')).toThrow(expect.objectContaining({ code: 'old_request' }));
  expect(() => two.respond({ ...asked, raw: '{}' }, {})).toThrow(expect.objectContaining({ code: 'old_request' }));
  expect(two.openRequests()).toMatchObject([
    { id: 0, method: 'item/commandExecution/requestApproval', params: { command: 'rm' } },
  ]);
  two.respond(asked, { decision: 'decline' });
  expect(two.openRequests()).toEqual([]);
});

test('a request that nobody can answer is refused at once, unless the caller says who can', async () => {
  const desk = openFakeDesk();
  const server = await desk.open();
  await server.turns.start(await threadIn(server), 'asks oddly');
  expect((await readTo(server, 'serverRequest/answered')).at(-1)).toMatchObject({
    params: { id: 7, error: { code: -32601 } },
  });
  expect(server.openRequests()).toEqual([]);
  const other = await desk.open({ instance: 'two', unhandled: [] });
  await other.turns.start(await threadIn(other), 'asks oddly');
  await readTo(other, 'currentTime/read');
  expect(other.openRequests()).toMatchObject([{ id: 7, method: 'currentTime/read' }]);
});
