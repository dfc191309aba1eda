// The client's reading of a stream: written in any way that the standard allows, cut into any chunks and cut off
// anywhere, each event comes once and in order.
import { expect, test } from 'vitest';
import { createClient } from '../../src/client/client.js';
import { readFrames, type Frame } from '../../src/client/read-frames.js';
import { fuzz, PATIENCE_MS, pick, times, type Random } from '../support/fuzz.js';
import { expectLinear } from '../support/growth.js';

const TEXTS = [
  '',
  'é 漢字 😀',
  '\u2028\u2029\u0085',
  '\ufeff',
  'data: x',
  'id: 7',
  ': no',
  '\u0000',
  'a:b',
  ' two  spaces ',
  'x'.repeat(3000),
];

function eventOf(seq: number, random: Random): string {
  const value = { seq, type: 'x', data: { text: pick(random, TEXTS), more: times(random(3), () => random(99)) } };
  // Over several lines, or one.
  return random(4) === 0 ? JSON.stringify(value, null, 2) : JSON.stringify(value);
}

function frameOf(seq: number, name: string | null, data: string, random: Random): string {
  const eol = pick(random, ['\n', '\n', '\r\n', '\r']);
  const space = pick(random, [' ', '']);
  const fields = [
    ...(random(5) === 0 ? [] : [`id:${space}${seq}`]),
    ...(name === null ? [] : [`event:${space}${name}`]),
    ...data.split('\n').map((line) => `data:${line.startsWith(' ') ? ' ' : space}${line}`),
  ];
  const noise = times(random(3), () =>
    pick(random, [': still here', ':', 'retry: 1000', 'nonsense', 'unknown: field', 'data-x: 1', 'id', 'event']),
  );
  // An empty name is ignored, and a later one counts.
  const before = noise.filter((line) => !(name === null && line === 'event' && random(2) === 0));
  return [
    ...(random(4) === 0 ? before : before.filter((line) => line.startsWith(':'))),
    ...fields,
    '',
    ...times(random(2), () => ''),
  ]
    .map((line) => `${line}${eol}`)
    .join('');
}

function chunksOf(bytes: Buffer, random: Random): Uint8Array[] {
  const most = pick(random, [1, 2, 7, 100, 5000, 100_000]);
  const chunks: Uint8Array[] = [];
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + 1 + random(most));
    chunks.push(Uint8Array.from(bytes.subarray(from, to)));
    from = to;
  }
  return chunks;
}

function bodyOf(chunks: readonly Uint8Array[], fails: boolean): ReadableStream<Uint8Array> {
  const left = [...chunks];
  return new ReadableStream({
    pull: (controller) => {
      const chunk = left.shift();
      if (chunk) controller.enqueue(chunk);
      else if (fails) controller.error(new Error('reset'));
      else controller.close();
    },
  });
}

async function framesIn(chunks: readonly Uint8Array[]): Promise<Frame[]> {
  const frames: Frame[] = [];
  for await (const group of readFrames(bodyOf(chunks, false), () => {})) frames.push(...group);
  return frames;
}

test(
  'over connections that are cut off anywhere, every event comes once and in its order',
  async () => {
    await fuzz('client stream', 80, async (random) => {
      const last = 1 + random(12);
      const texts = times(last, (index) => eventOf(index + 1, random));
      let connections = 0;
      const leave = new AbortController();
      const client = createClient({
        url: 'http://server',
        wait: async () => {},
        fetch: (async (address: string) => {
          connections += 1;
          // It would reconnect forever.
          if (connections > 100) leave.abort();
          const cursor = Number(new URL(address).searchParams.get('cursor'));
          expect(cursor).toBe(seen.length);
          if (random(8) === 0) throw new Error('refused');
          // Some repeat known events.
          const from = Math.max(0, cursor - random(3));
          const frames = texts
            .slice(from)
            .map((text, index) => frameOf(from + index + 1, null, text, random))
            .join('');
          const whole = Buffer.from(
            [
              pick(random, ['', '\ufeff']),
              pick(random, ['', 'retry: 1000\n\n', ': hello\r\n\r\n']),
              frames,
              frameOf(0, 'end', '{}', random),
            ].join(''),
          );
          const isCut = connections < 30 && random(3) > 0;
          return new Response(
            bodyOf(chunksOf(isCut ? whole.subarray(0, random(whole.length)) : whole, random), isCut && random(2) === 0),
          );
        }) as typeof fetch,
      });
      const seen: string[] = [];
      for await (const event of client.events('run', { signal: leave.signal })) seen.push(JSON.stringify(event));
      expect(seen).toEqual(texts.map((text) => JSON.stringify(JSON.parse(text))));
    });
  },
  PATIENCE_MS,
);

test(
  'chunk boundaries make no difference, and an unterminated frame is ignored',
  async () => {
    await fuzz('client frames', 150, async (random) => {
      const frames = times(1 + random(5), (index) => ({
        name: pick(random, [null, 'ready', 'end']),
        data: eventOf(index, random),
      }));
      const bytes = Buffer.from(frames.map(({ name, data }, index) => frameOf(index, name, data, random)).join(''));
      const whole = await framesIn([bytes]);
      expect(whole.map(({ event, data }) => [event, data])).toEqual(
        frames.map(({ name, data }) => [name ?? 'message', data]),
      );
      expect(await framesIn(chunksOf(bytes, random))).toEqual(whole);
      const cut = bytes.subarray(0, random(bytes.length + 1));
      const some = await framesIn(chunksOf(cut, random));
      expect(some).toEqual(whole.slice(0, some.length));
      expect(await framesIn([cut])).toEqual(some);
    });
  },
  PATIENCE_MS,
);

test('an event of many megabytes in small chunks is read in linear time', async () => {
  await expectLinear(8 * 1024 * 1024, async (length) => {
    const bytes = Buffer.from(`data: ${'x'.repeat(length)}\n\n`);
    const chunks = times(Math.ceil(bytes.length / 2048), (index) => bytes.subarray(index * 2048, (index + 1) * 2048));
    const [frame] = await framesIn(chunks);
    expect(frame?.data.length).toBe(length);
  });
});
