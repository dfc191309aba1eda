// The peer alone: lines in, lines out, time moved by hand.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { JsonRpcError, PeerEndedError, RequestTimeoutError } from '../../src/jsonrpc/errors.js';
import { JsonRpcPeer } from '../../src/jsonrpc/peer.js';
import { LineReader } from '../../src/jsonrpc/received-line.js';
import { expectLinear } from '../support/growth.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

function meet(timeoutMs?: number) {
  const timers = new SimulatedTimers();
  const sent: string[] = [];
  const heard: unknown[][] = [];
  const peer = new JsonRpcPeer({
    write: (line) => void sent.push(line),
    timers,
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    handlers: {
      notified: (method, params, raw) => void heard.push(['notified', method, params, raw]),
      asked: (id, method, params, raw) => void heard.push(['asked', id, method, params, raw]),
      unreadable: (reason, raw) => void heard.push(['unreadable', reason, raw]),
    },
  });
  const lines = linesTo(peer);
  const say = (text: string): void => lines.push(Buffer.from(text));
  return { peer, timers, sent, heard, say, lines };
}

const linesTo = (peer: JsonRpcPeer): LineReader => new LineReader((line) => peer.receive(line), 0);

const none = (): void => {};
const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => 'no failure',
    (error: unknown) => error,
  );

test('requests are numbered from 1, written in their order, and resolve with their own result', async () => {
  const { peer, sent, say } = meet();
  const [first, second] = [peer.request('a', { x: 1 }), peer.request('b')];
  peer.notify('c');
  expect(sent).toEqual([
    '{"id":1,"method":"a","params":{"x":1}}\n',
    '{"id":2,"method":"b","params":{}}\n',
    '{"method":"c"}\n',
  ]);
  say('{"id":2,"result":"two"}\n{"jsonrpc":"2.0","id":1,"result":null}\n');
  expect(await Promise.all([first, second])).toEqual([null, 'two']);
});

test('a request whose answer could not be written still waits for one, and is answered once', () => {
  let isBroken = true;
  const sent: string[] = [];
  const peer = new JsonRpcPeer({
    write: (line) => {
      if (isBroken) throw new Error('the pipe is full');
      sent.push(line);
    },
    timers: new SimulatedTimers(),
    handlers: { notified: none, asked: none, unreadable: none },
  });
  linesTo(peer).push(Buffer.from('{"id":7,"method":"may I?"}\n'));
  expect(() => peer.respond(7, 'yes')).toThrow('the pipe is full');
  expect(peer.asked.map(({ id }) => id)).toEqual([7]);
  isBroken = false;
  peer.respond(7, 'yes');
  expect(peer.asked).toEqual([]);
  expect(() => peer.respond(7, 'yes')).toThrow('waits for an answer');
  expect(sent).toEqual(['{"id":7,"result":"yes"}\n']);
});

test('an error rejects with its code, message and data', async () => {
  const { peer, say } = meet();
  const failed = failure(peer.request('a'));
  say('{"error":{"code":-32600,"message":"no","data":[1]},"id":1}\n');
  const error = await failed;
  expect(error).toBeInstanceOf(JsonRpcError);
  expect(error).toMatchObject({ method: 'a', code: -32600, message: 'no', data: [1] });
});

test('a request without a response in time fails, and its late response is emitted as a line of its own', async () => {
  const { peer, timers, heard, say } = meet(100);
  const [usual, patient] = [failure(peer.request('a')), peer.request('b', {}, 5000)];
  timers.advance(100);
  expect(await usual).toBeInstanceOf(RequestTimeoutError);
  say('{"id":1,"result":1}\n{"id":2,"result":2}\n');
  expect(await patient).toBe(2);
  expect(heard).toEqual([['unreadable', 'an answer to no request that waits', '{"id":1,"result":1}']]);
  expect(timers.lengths()).toEqual([]);
});

test.each([0, -7, 1.5, '', 'x', '0'])(
  'a request of the other side with the id %j is answered with the same id, once',
  (id) => {
    const { peer, sent, heard, say } = meet();
    const raw = JSON.stringify({ method: 'may I', id, params: { n: 1 } });
    say(`${raw}\n`);
    expect(heard).toEqual([['asked', id, 'may I', { n: 1 }, raw]]);
    peer.respond(id, { yes: true });
    expect(sent).toEqual([`${JSON.stringify({ id, result: { yes: true } })}\n`]);
    expect(() => peer.respond(id, {})).toThrow('waits for an answer');
    expect(() => peer.refuse(id, 1, 'no')).toThrow('waits for an answer');
    expect(sent).toHaveLength(1);
  },
);

test('a request of the other side can be refused, and one that was withdrawn is not answered', () => {
  const { peer, sent, say } = meet();
  say('{"id":0,"method":"a"}\n{"id":1,"method":"b"}\n');
  peer.refuse(0, -32601, 'unknown');
  peer.withdraw(1);
  expect(() => peer.respond(1, {})).toThrow('waits for an answer');
  expect(() => peer.respond('0', {})).toThrow('waits for an answer');
  expect(sent).toEqual(['{"id":0,"error":{"code":-32601,"message":"unknown"}}\n']);
});

test.each([
  'no JSON',
  '[1]',
  '5',
  'null',
  '{}',
  '{"id":1}',
  '{"id":null,"result":1}',
  '{"id":9,"result":1}',
  '{"id":{},"method":"a"}',
  '{"id":12345678901234567890,"method":"a"}',
  '{"id":1e999,"method":"a"}',
  '{"id":-1e999,"result":1}',
  '{"method":5}',
  '{"id":1,"error":"text"}',
  '{"id":1,"error":{"code":1}}',
  '',
  '  ',
])('the line %j is given out as unreadable', (line) => {
  const { peer, heard, say } = meet();
  void failure(peer.request('a'));
  say(`${line}\n`);
  expect(heard).toEqual([['unreadable', expect.any(String), line]]);
});

test('the end fails all that waits, gives out the rest of a line, and refuses whatever comes after', async () => {
  const { peer, timers, sent, heard, say, lines } = meet();
  const waiting = [failure(peer.request('a')), failure(peer.request('b'))];
  say('{"id":5,"method":"m"}\n{"id":1,"res');
  lines.end();
  peer.end('it is gone');
  for (const error of await Promise.all(waiting)) expect(error).toEqual(new PeerEndedError('it is gone'));
  expect(heard.at(-1)).toEqual(['unreadable', 'not JSON', '{"id":1,"res']);
  expect(await failure(peer.request('c'))).toBeInstanceOf(PeerEndedError);
  expect(() => peer.respond(5, {})).toThrow('it is gone');
  expect(() => peer.notify('d')).toThrow('it is gone');
  expect(sent).toHaveLength(2);
  expect(timers.lengths()).toEqual([]);
});

test('messages after the end within one chunk are ignored and not kept', () => {
  const heard: string[] = [];
  const peer = new JsonRpcPeer({
    write: none,
    timers: new SimulatedTimers(),
    handlers: {
      notified: () => peer.end('gone'),
      asked: (_id, method) => void heard.push(method),
      unreadable: (reason) => void heard.push(reason),
    },
  });
  linesTo(peer).push(
    Buffer.from('{"id":1,"method":"before"}\n{"method":"bye"}\n{"id":2,"method":"after"}\nnonsense\n'),
  );
  expect([heard, peer.asked]).toEqual([['before'], []]);
});

test('a request that cannot be written fails and leaves nothing behind', async () => {
  const timers = new SimulatedTimers();
  const peer = new JsonRpcPeer({
    write: () => {
      throw new Error('disk full');
    },
    timers,
    handlers: { notified: none, asked: none, unreadable: none },
  });
  expect(await failure(peer.request('a'))).toEqual(new Error('disk full'));
  expect(timers.lengths()).toEqual([]);
});

test('a line of up to 64 MB in small chunks is read in linear time', async () => {
  const chunk = Buffer.alloc(64 * 1024, 'x');
  await expectLinear(256, (chunks) => {
    const { heard, lines } = meet();
    lines.push(Buffer.from('{"method":"big","params":"'));
    for (let i = 0; i < chunks; i += 1) lines.push(chunk);
    lines.push(Buffer.from('"}\r\n'));
    const [, method, params] = heard[0] ?? [];
    expect([method, (params as string).length]).toEqual(['big', chunks * chunk.length]);
  });
});

const line = fc.oneof(
  fc.record({ method: fc.string(), params: fc.jsonValue() }).map((value) => JSON.stringify(value)),
  fc.record({ id: fc.oneof(fc.integer(), fc.string()), method: fc.string() }).map((value) => JSON.stringify(value)),
  fc.record({ id: fc.integer(), result: fc.jsonValue() }).map((value) => JSON.stringify(value)),
  fc.string({ unit: 'grapheme' }).filter((text) => !/[\r\n]/.test(text)),
);

test('wherever the chunks end, the same messages come', () => {
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 8 }),
      fc.constantFrom('\n', '\r\n'),
      fc.array(fc.nat(200), { maxLength: 20 }),
      (lines, eol, cuts) => {
        const bytes = Buffer.from(lines.map((text) => text + eol).join(''));
        const whole = meet();
        whole.lines.push(bytes);
        const cut = meet();
        let from = 0;
        for (const length of [...cuts, bytes.length]) {
          cut.lines.push(bytes.subarray(from, from + length));
          from += length;
        }
        expect(cut.heard).toEqual(whole.heard);
        expect(whole.heard.map((event) => event.at(-1))).toEqual(lines);
      },
    ),
  );
});

test('in whatever order the answers come, each finds its request', async () => {
  const order = fc.integer({ min: 1, max: 20 }).chain((count) =>
    fc.shuffledSubarray(
      Array.from({ length: count }, (_, index) => index + 1),
      { minLength: count },
    ),
  );
  await fc.assert(
    fc.asyncProperty(order, async (ids) => {
      const { peer, say } = meet();
      const answers = ids.map((_, index) => peer.request(`m${index + 1}`).catch((error: unknown) => error));
      for (const id of ids)
        say(id % 3 === 0 ? `{"id":${id},"error":{"code":${id},"message":"m"}}\n` : `{"id":${id},"result":${id}}\n`);
      const settled = await Promise.all(answers);
      expect(
        settled.map((value) => (value instanceof JsonRpcError ? `error ${value.code} of ${value.method}` : value)),
      ).toEqual(settled.map((_, index) => ((index + 1) % 3 === 0 ? `error ${index + 1} of m${index + 1}` : index + 1)));
    }),
  );
});
