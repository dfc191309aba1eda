// For any behaviour of the other side of a JSON-RPC conversation: each request is answered at most once and with its
// own id, each promise settles, nothing is thrown, and nothing remains after the end.
import { expect, test } from 'vitest';
import { JsonRpcPeer } from '../../src/jsonrpc/peer.js';
import type { RequestId } from '../../src/jsonrpc/read-message.js';
import { LineReader } from '../../src/jsonrpc/received-line.js';
import { damage } from '../support/damaged-streams.js';
import { fuzz, PATIENCE_MS, pick, times, type Random } from '../support/fuzz.js';
import { anyJson, mutateJson, toJsonText } from '../support/json-mutations.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

interface Side {
  readonly peer: JsonRpcPeer;
  readonly lines: LineReader;
  readonly timers: SimulatedTimers;
  readonly sent: string[];
  readonly asked: { readonly id: RequestId; readonly raw: string }[];
  // Lines that were delivered, except responses.
  heard: number;
  // Counts of our own requests.
  open: number;
  settled: number;
  // Responses to them.
  answered: number;
}

function meet(onLine: (side: Side) => void = () => {}): Side {
  const timers = new SimulatedTimers();
  const sent: string[] = [];
  const hear = (): void => {
    side.heard += 1;
    onLine(side);
  };
  const peer = new JsonRpcPeer({
    write: (line) => void sent.push(line),
    timers,
    timeoutMs: 1000,
    handlers: {
      notified: hear,
      asked: (id, _method, _params, raw) => {
        side.asked.push({ id, raw });
        hear();
      },
      unreadable: hear,
    },
  });
  const lines = new LineReader((line) => peer.receive(line), 0);
  const side: Side = { peer, lines, timers, sent, asked: [], heard: 0, open: 0, settled: 0, answered: 0 };
  return side;
}

function request(side: Side): void {
  side.open += 1;
  const done = (): void => void (side.settled += 1);
  void side.peer.request(`m${side.open}`, { n: side.open }).then(
    () => {
      side.answered += 1;
      done();
    },
    (error: Error) => {
      if (error.name === 'JsonRpcError') side.answered += 1;
      done();
    },
  );
}

function answer(side: Side, random: Random): void {
  const { id } = pick(random, [...side.peer.asked, ...side.asked, { id: 99 }]);
  const waits = side.peer.asked.some((each) => each.id === id);
  const before = side.sent.length;
  try {
    if (random(3) === 0) side.peer.refuse(id, -32000, 'no');
    else side.peer.respond(id, { ok: true });
    expect(waits).toBe(true);
  } catch (error) {
    if (waits) throw error;
    expect(side.sent).toHaveLength(before);
  }
}

const LINES = [
  '{"id":1,"result":1}',
  '{"id":2,"error":{"code":1,"message":"no"}}',
  '{"id":3,"result":{"deep":{"er":[1]}}}',
  '{"id":"a","method":"may I","params":{"x":1}}',
  '{"id":7,"method":"may I"}',
  '{"jsonrpc":"2.0","method":"told","params":{"thread":{"id":"t"}}}',
  '[{"id":1,"result":1},{"id":2,"result":2}]',
];
const IDS = [
  '1',
  '2',
  '3',
  '4',
  '-0',
  '0',
  '1.0',
  '1e0',
  '1e999',
  '-1e999',
  '0.5',
  '9007199254740993',
  '"1"',
  '""',
  'null',
  '[1]',
  '{}',
  'true',
  `"${'9'.repeat(10_000)}"`,
  '"__proto__"',
];

function anyLine(random: Random): string {
  switch (random(5)) {
    case 0:
      return toJsonText(mutateJson(JSON.parse(pick(random, LINES)), random));
    case 1:
      return `{"id":${pick(random, IDS)},"method":"m","params":${toJsonText(anyJson(random))}}`;
    case 2:
      return `{"id":${pick(random, IDS)},"result":${toJsonText(anyJson(random))}}`;
    case 3:
      return `{"id":${pick(random, IDS)},"error":${toJsonText(anyJson(random))}}`;
    default:
      return pick(random, LINES);
  }
}

// A response belongs to a request with the same id, and there are no more responses than requests.
function expectAnswersFit({ sent, asked }: Side): void {
  const open = asked.map(({ raw }) => (JSON.parse(raw) as { id: unknown }).id);
  for (const line of sent) {
    const message = JSON.parse(line) as { id?: unknown; method?: string };
    if (message.method !== undefined) continue;
    const at = open.findIndex((id) => id === message.id);
    expect(at, `${line.slice(0, 200)} answers nothing that was asked`).toBeGreaterThanOrEqual(0);
    open.splice(at, 1);
  }
}

async function expectNothingLeft(side: Side): Promise<void> {
  side.peer.end('over');
  await new Promise((resolve) => setImmediate(resolve));
  expect([side.settled, side.timers.lengths(), side.peer.asked]).toEqual([side.open, [], []]);
  const { heard } = side;
  side.lines.push(Buffer.from('\n{"method":"late"}\n'));
  expect(side.heard).toBe(heard);
}

test(
  'lines of any kind, in pieces, between our own requests and answers',
  async () => {
    await fuzz('json-rpc lines', 400, async (random) => {
      const side = meet();
      let lines = 0;
      for (let step = 0; step < 30; step += 1) {
        if (random(3) === 0) request(side);
        const damaged = random(4) === 0;
        const text = times(1 + random(3), () => anyLine(random).replaceAll('\n', ' '))
          .map((line) => `${line}${pick(random, ['\n', '\r\n'])}`)
          .join('');
        const bytes = damaged
          ? Buffer.concat([damage(Buffer.from(text), random, [Buffer.from(text)], 2), Buffer.from('\n')])
          : Buffer.from(text);
        lines += bytes.filter((byte) => byte === 0x0a).length;
        for (let at = 0; at < bytes.length;) {
          const to = at + 1 + random(pick(random, [2, 50, 5000]));
          side.lines.push(bytes.subarray(at, to));
          at = to;
        }
        if (random(2) === 0) answer(side, random);
        if (random(10) === 0) side.timers.advance(500);
      }
      await new Promise((resolve) => setImmediate(resolve));
      // Each line was delivered or was a response; late responses were delivered.
      expect(side.heard + side.answered).toBe(lines);
      expectAnswersFit(side);
      await expectNothingLeft(side);
    });
  },
  PATIENCE_MS,
);

test(
  'two sides over a wire that loses, doubles, swaps and damages lines',
  async () => {
    await fuzz('json-rpc wire', 100, async (random) => {
      const [near, far] = [meet(), meet()];
      const carry = (from: Side, to: Side): void => {
        const lines = from.sent
          .slice(carried.get(from))
          .flatMap((line) => (random(8) === 0 ? [] : random(8) === 0 ? [line, line] : [line]));
        carried.set(from, from.sent.length);
        const bytes = Buffer.from(lines.toSorted(() => (random(6) === 0 ? 1 : 0)).join(''));
        to.lines.push(random(10) === 0 ? damage(bytes, random, [bytes], 1) : bytes);
      };
      const carried = new Map([
        [near, 0],
        [far, 0],
      ]);
      for (let step = 0; step < 40; step += 1) {
        for (const side of [near, far]) {
          if (random(2) === 0) request(side);
          if (random(2) === 0 && side.asked.length > 0) answer(side, random);
        }
        carry(near, far);
        carry(far, near);
        if (random(12) === 0) near.timers.advance(1000);
      }
      for (const side of [near, far]) {
        expectAnswersFit(side);
        await expectNothingLeft(side);
      }
    });
  },
  PATIENCE_MS,
);

test(
  'after an end within a chunk, earlier messages are delivered and later ones are ignored',
  async () => {
    await fuzz('json-rpc end', 300, async (random) => {
      const last = random(8);
      const side = meet((self) => {
        if (self.heard === last) self.peer.end('gone');
      });
      times(random(4), () => request(side));
      side.lines.push(
        Buffer.from(
          times(12, () => anyLine(random).replaceAll('\n', ' '))
            .map((line) => `${line}\n`)
            .join(''),
        ),
      );
      await expectNothingLeft(side);
    });
  },
  PATIENCE_MS,
);
