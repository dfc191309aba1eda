// The feed of lines: the same lines in the same order for every reader, from memory or from the log, in bounded memory.
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LineFeed, PACE_BYTES, RECENT_BYTES } from '../../src/process/line-feed.js';
import { LineReader, type ReceivedLine } from '../../src/jsonrpc/received-line.js';
import { RequestLedger } from '../../src/jsonrpc/request-ledger.js';

let dir = '';
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'parley-feed-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function openFeed(before = '', recall?: (line: ReceivedLine) => ReceivedLine) {
  const path = join(dir, 'events.jsonl');
  writeFileSync(path, before);
  let size = Buffer.byteLength(before);
  const feed = new LineFeed({ path, published: size, ...(recall ? { recall } : {}) });
  const reader = new LineReader((line) => feed.publish(line), size);
  return {
    path,
    feed,
    reader,
    say(text: string): void {
      appendFileSync(path, text);
      size += Buffer.byteLength(text);
      reader.push(Buffer.from(text));
    },
    end(): void {
      reader.end();
      feed.end(size);
    },
    // From here on a read of the log fails.
    emptyLog: (): void => truncateSync(path, 0),
  };
}

const numbered = (n: number, bytes = 100): string => `${JSON.stringify({ n, text: 'x'.repeat(bytes) })}\n`;
const numberOf = ({ json }: ReceivedLine): unknown => (json as { n: number }).n;
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

async function readAll(lines: AsyncIterable<ReceivedLine>): Promise<ReceivedLine[]> {
  const all: ReceivedLine[] = [];
  for await (const line of lines) all.push(line);
  return all;
}

test('readers from any offset get the same lines with the same ranges, from the log and from memory', async () => {
  const { feed, say, end } = openFeed(numbered(0) + numbered(1));
  const live = feed.read();
  for (let n = 2; n < 6000; n += 1) say(numbered(n));
  say('{"cut":');
  end();
  const [all, late] = [await readAll(feed.read({ from: 0 })), await readAll(live)];
  expect(all.slice(0, -1).map(numberOf)).toEqual(Array.from({ length: 6000 }, (_, n) => n));
  expect(all.at(-1)).toMatchObject({ text: '{"cut":', message: { type: 'unreadable' } });
  expect(all.reduce((at, { from, to }) => (expect(from).toBe(at), to), 0)).toBe(all.at(-1)?.to);
  expect(late.map(({ from, text }) => [from, text])).toEqual(all.slice(2).map(({ from, text }) => [from, text]));
  const middle = all[3000]?.from ?? 0;
  expect((await readAll(feed.read({ from: middle }))).map(({ from }) => from)).toEqual(
    all.slice(3000).map(({ from }) => from),
  );
  // In the middle of a line: the rest of that line comes first.
  expect((await readAll(feed.read({ from: middle + 3 })))[1]).toMatchObject({ from: all[3001]?.from });
});

test('a reader that keeps up never reads the log, and gets the very objects that were published', async () => {
  const { feed, say, end, emptyLog } = openFeed();
  const seen: ReceivedLine[] = [];
  const reading = (async () => {
    for await (const line of feed.read({ paces: true })) seen.push(line);
  })();
  for (let n = 0; n < 5000; n += 1) {
    say(numbered(n, 1000));
    emptyLog();
    await feed.room();
    if (n % 100 === 0) await turn();
  }
  end();
  await reading;
  expect(seen.map(numberOf)).toEqual(Array.from({ length: 5000 }, (_, n) => n));
});

test('a pacing reader holds the server back when it is behind, and loses no line from memory', async () => {
  const { feed, say, end, emptyLog } = openFeed();
  const lines = feed.read({ paces: true });
  const first = lines.next();
  say(numbered(0));
  expect((await first).value).toMatchObject({ from: 0 });
  let said = 1;
  let bytes = 0;
  let room: Promise<void> | undefined;
  for (; (room = feed.room()) === undefined; said += 1) {
    expect(bytes).toBeLessThanOrEqual(PACE_BYTES);
    const line = numbered(said, 1000);
    say(line);
    bytes += line.length;
  }
  // The reader's current line belongs to its backlog.
  expect(bytes + numbered(0).length).toBeGreaterThan(PACE_BYTES);
  let hasRoom = false;
  void room.then(() => (hasRoom = true));
  await turn();
  expect(hasRoom).toBe(false);
  emptyLog();
  for (let n = 1; n < said; n += 1) expect(numberOf((await lines.next()).value as ReceivedLine)).toBe(n);
  await room;
  expect(feed.room()).toBeUndefined();
  end();
});

test('a pacing reader that leaves lets the server continue', async () => {
  const { feed, say } = openFeed();
  const lines = feed.read({ paces: true });
  const first = lines.next();
  say(numbered(0, 2 * PACE_BYTES));
  say(numbered(1, 2 * PACE_BYTES));
  await first;
  const room = feed.room();
  expect(room).toBeInstanceOf(Promise);
  await lines.return();
  await room;
  expect(feed.room()).toBeUndefined();
});

test('a request read from the log again is the one that was received, so it can still be answered', async () => {
  const ledger = new RequestLedger();
  const { feed, say, end } = openFeed('', (line) => ledger.recall(line));
  const asked = feed.read();
  const first = asked.next();
  say('{"id":0,"method":"may I?"}\n');
  const { value: line } = await first;
  if (line?.message.type !== 'request') throw new Error('the line is a request');
  ledger.add(line.message, line);
  for (let n = 0; n < Math.ceil((2 * RECENT_BYTES) / 1000); n += 1) say(numbered(n, 1000));
  end();
  const [again] = await readAll(feed.read({ from: 0, paces: true }));
  expect(again).toBe(line);
  ledger.close(0, 'answered');
  expect((await readAll(feed.read({ from: 0 })))[0]).not.toBe(line);
});

test('a stalled plain reader neither blocks the server nor keeps its lines in memory', async () => {
  const { feed, say, end, emptyLog } = openFeed();
  const lines = feed.read();
  const first = lines.next();
  const count = Math.ceil((2 * RECENT_BYTES) / 1000);
  for (let n = 0; n < count; n += 1) say(numbered(n, 1000));
  expect(numberOf((await first).value as ReceivedLine)).toBe(0);
  expect(feed.room()).toBeUndefined();
  end();
  expect((await readAll(lines)).map(numberOf)).toEqual(Array.from({ length: count - 1 }, (_, n) => n + 1));
  const again = feed.read({ from: 0 });
  emptyLog();
  await expect(again.next()).rejects.toThrow('is shorter than the data written to it');
});
