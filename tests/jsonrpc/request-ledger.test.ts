// The ledger of requests: one state per request, found by id, visible to every holder of the message.
import { expect, test } from 'vitest';
import type { RequestMessage } from '../../src/jsonrpc/read-message.js';
import { LineReader, type ReceivedLine } from '../../src/jsonrpc/received-line.js';
import { RequestLedger } from '../../src/jsonrpc/request-ledger.js';

function ask(ledger: RequestLedger, id: number, from = 0): RequestMessage {
  let message: RequestMessage | null = null;
  const add = (line: ReceivedLine): void => {
    if (line.message.type !== 'request') throw new Error('the line is a request');
    message = line.message;
    ledger.add(line.message, line);
  };
  new LineReader(add, from).push(Buffer.from(`{"id":${id},"method":"m"}\n`));
  if (message === null) throw new Error('the line has come');
  return message;
}

const isPending = async (promise: Promise<void>): Promise<boolean> =>
  Promise.race([promise.then(() => false), new Promise<true>((resolve) => setImmediate(() => resolve(true)))]);

test('a request is open until it is answered or withdrawn, and is closed once', () => {
  const ledger = new RequestLedger();
  const [first, second] = [ask(ledger, 0), ask(ledger, 1)];
  expect(ledger.list().map(({ message }) => message)).toEqual([first, second]);
  ledger.close(0, 'answered');
  ledger.close(0, 'withdrawn');
  ledger.close(1, 'withdrawn');
  expect([first.state, second.state, ledger.list()]).toEqual(['answered', 'withdrawn', []]);
});

test('an id that is used again names the later request only', () => {
  const ledger = new RequestLedger();
  const [early, late] = [ask(ledger, 0), ask(ledger, 0, 100)];
  expect([ledger.has(early), ledger.has(late)]).toEqual([false, true]);
  ledger.close(0, 'answered');
  expect([early.state, late.state]).toEqual(['open', 'answered']);
});

test('the end of the conversation leaves no request to answer, but an unanswered one stays open', async () => {
  const ledger = new RequestLedger();
  const message = ask(ledger, 0);
  const stop = new AbortController();
  const closed = ledger.closed(message, stop.signal);
  ledger.end();
  expect([ledger.has(message), message.state, await isPending(closed)]).toEqual([false, 'open', true]);
  stop.abort();
  await closed;
});

test('everybody who waits for a request to be closed is woken by that, and by no other request', async () => {
  const ledger = new RequestLedger();
  const message = ask(ledger, 0);
  ask(ledger, 1);
  const { signal } = new AbortController();
  const waiting = [ledger.closed(message, signal), ledger.closed(message, signal)];
  ledger.close(1, 'withdrawn');
  expect(await isPending(Promise.race(waiting))).toBe(true);
  ledger.close(0, 'withdrawn');
  await Promise.all([...waiting, ledger.closed(message, signal)]);
});
