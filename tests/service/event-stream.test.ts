// One reader's stream: its keep-alive comments, when an idle reader is disconnected, and that nothing follows a revoked
// token.
import { once } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import { EventStream } from '../../src/service/streams/event-stream.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { Reader } from './reader.js';

const BEAT = ': still here';
// More than the reader's buffer.
const FRAME = `data: ${'x'.repeat(100)}\n\n`;

let reader: Reader;
let timers: SimulatedTimers;

beforeEach(() => {
  reader = new Reader();
  timers = new SimulatedTimers();
});

describe('signs of life', () => {
  test('a stream without news gives one every 15 seconds', async () => {
    const news = new Gate();
    const idle = new EventStream(reader.response, timers).idle(news.opened);
    timers.advance(14_999);
    expect(reader.frames).toEqual([]);
    timers.advance(1);
    expect(reader.frames).toEqual([BEAT]);
    timers.advance(30_000);
    expect(reader.frames).toEqual([BEAT, BEAT, BEAT]);
    news.open();
    await idle;
  });

  test('none comes after the news, whether there was one before or not', async () => {
    const stream = new EventStream(reader.response, timers);
    for (const before of [0, 20_000]) {
      const news = new Gate();
      const idle = stream.idle(news.opened);
      timers.advance(before);
      news.open();
      await idle;
      const { text } = reader;
      timers.advance(60_000);
      expect(reader.text).toBe(text);
      expect(timers.lengths()).toEqual([]);
    }
  });
});

describe('a reader that takes nothing', () => {
  test('is disconnected after 30 seconds without reading, and the writer continues', async () => {
    const stream = new EventStream(reader.response, timers);
    reader.hold();
    const written = stream.write(FRAME);
    timers.advance(29_999);
    expect([reader.destroyed, stream.over]).toEqual([false, false]);
    timers.advance(1);
    expect(reader.destroyed).toBe(true);
    await written;
    expect(stream.over).toBe(true);
    expect(timers.lengths()).toEqual([]);
  });

  test('is kept if it takes it in time', async () => {
    const stream = new EventStream(reader.response, timers);
    reader.hold();
    const written = stream.write(FRAME);
    timers.advance(29_999);
    reader.release();
    await written;
    expect(timers.lengths()).toEqual([]);
    timers.advance(30_000);
    expect([reader.destroyed, stream.over]).toEqual([false, false]);
  });

  test('is let go of 30 seconds after the end of the stream', async () => {
    const stream = new EventStream(reader.response, timers);
    const closed = once(reader, 'close');
    reader.hold();
    stream.end(FRAME);
    timers.advance(29_999);
    expect(reader.destroyed).toBe(false);
    timers.advance(1);
    expect(reader.destroyed).toBe(true);
    await closed;
    expect(timers.lengths()).toEqual([]);
  });

  test('still gets the last frame if it takes it in time', async () => {
    const stream = new EventStream(reader.response, timers);
    const closed = once(reader, 'close');
    reader.hold();
    stream.end(FRAME);
    timers.advance(29_999);
    reader.release();
    await closed;
    expect(reader.text.endsWith(FRAME)).toBe(true);
    expect(timers.lengths()).toEqual([]);
  });

  test('that left before its stream started has left for the stream', async () => {
    const closed = once(reader, 'close');
    reader.destroy();
    await closed;
    const stream = new EventStream(reader.response, timers);
    expect(stream.over).toBe(true);
    await stream.write(FRAME);
    expect(timers.lengths()).toEqual([]);
  });
});

describe('a token that was taken away', () => {
  test('no last frame is sent', async () => {
    let may = true;
    const stream = new EventStream(reader.response, timers, { mayGoOn: () => may });
    const closed = once(reader, 'close');
    may = false;
    stream.end('event: end\ndata: {}\n\n');
    await closed;
    expect(reader.frames).toEqual([]);
  });

  test('the next frame is not sent but ends the stream, and nothing follows', async () => {
    let may = true;
    const stream = new EventStream(reader.response, timers, { mayGoOn: () => may });
    const closed = once(reader, 'close');
    await stream.write('data: 1\n\n');
    may = false;
    await stream.write('data: 2\n\n');
    expect(stream.over).toBe(true);
    // Not even if it is restored.
    may = true;
    await stream.write('data: 3\n\n');
    stream.end('event: end\ndata: {}\n\n');
    await closed;
    expect(reader.frames).toEqual(['data: 1']);
    expect(reader.errors).toEqual([]);
  });

  test('a stream without news ends at its next sign of life, without giving it', async () => {
    let may = true;
    const stream = new EventStream(reader.response, timers, { mayGoOn: () => may });
    const closed = once(reader, 'close');
    const idle = stream.idle(new Promise((resolve) => stream.onClosed(resolve)));
    timers.advance(15_000);
    may = false;
    timers.advance(15_000);
    await closed;
    await idle;
    expect(reader.frames).toEqual([BEAT]);
    expect(timers.lengths()).toEqual([]);
  });
});

test('nothing is written after the end, nor a second one', async () => {
  const stream = new EventStream(reader.response, timers);
  const closed = once(reader, 'close');
  stream.end('data: last\n\n');
  await stream.write('data: later\n\n');
  stream.end('data: last again\n\n');
  await closed;
  expect(reader.frames).toEqual(['data: last']);
  expect(reader.errors).toEqual([]);
});
