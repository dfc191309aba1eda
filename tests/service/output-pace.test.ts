// How much all streams together send before other work of the server has its turn.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { OutputPace } from '../../src/service/streams/output-pace.js';
import { countTicks } from '../support/count-ticks.js';

const KB = 1024;
const TICK_BYTES = 1024 * KB;

let ticks: ReturnType<typeof countTicks>;
let pace: OutputPace;
// The bytes that were sent in each tick.
let sent: Map<number, number>;
beforeEach(() => {
  ticks = countTicks();
  pace = new OutputPace();
  sent = new Map();
});
afterEach(() => ticks.stop());

async function send(pages: number, bytes: number, onPage: () => void = () => {}): Promise<void> {
  for (let page = 0; page < pages; page += 1) {
    sent.set(ticks.at, (sent.get(ticks.at) ?? 0) + bytes);
    onPage();
    await pace.sent(bytes);
  }
}

test('one stream sends 1 MiB in a tick', async () => {
  await send(320, 64 * KB);
  expect(Math.max(...sent.values())).toBeLessThanOrEqual(TICK_BYTES);
  expect(sent.size).toBeGreaterThanOrEqual(20);
});

test('a hundred streams together send no more in a tick than one', async () => {
  await Promise.all(Array.from({ length: 100 }, () => send(6, 64 * KB)));
  // All of them may begin in the first tick, because a stream waits after a page.
  const [, ...later] = sent.values();
  expect(Math.max(...later)).toBeLessThanOrEqual(TICK_BYTES);
  expect(later.length).toBeGreaterThanOrEqual(Math.floor((500 * 64 * KB) / TICK_BYTES));
});

test('streams take turns: each sends its second page before one sends its third', async () => {
  const order: number[] = [];
  const streams = Array.from({ length: 8 }, () => {
    let pages = 0;
    return send(3, 512 * KB, () => order.push((pages += 1)));
  });
  await Promise.all(streams);
  expect(order).toEqual(order.toSorted((a, b) => a - b));
});

test('short frames count for the work behind them', async () => {
  await send(1000, 10);
  expect(sent.size).toBeGreaterThanOrEqual(1000 / 128);
});

test('a stream that sends little does not wait', () => {
  expect(pace.sent(32 * KB)).toBeUndefined();
  expect(pace.sent(64 * KB)).toBeUndefined();
});

test('a page larger than the limit of a tick is sent alone', async () => {
  await Promise.all([send(3, 2048 * KB), send(3, 2048 * KB)]);
  const [, ...later] = sent.values();
  expect(later).toEqual([2048 * KB, 2048 * KB, 2048 * KB, 2048 * KB]);
});
