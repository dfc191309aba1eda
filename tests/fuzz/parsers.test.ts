// For any output of an engine and any chunking: no throw, the same events each time, every byte covered once, every
// event valid, and work proportional to the length.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENGINES, findEngine } from '../../src/engines/registry.js';
import { projectConversation } from '../../src/fcmp/fold.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { RecordingReader } from '../../src/audit/read-recording.js';
import { measureCover } from '../../src/rasp/cover.js';
import type { RaspEvent, StreamName } from '../../src/rasp/event.js';
import { closedValidator } from '../support/closed-validator.js';
import { damage } from '../support/damaged-streams.js';
import { fuzz, PATIENCE_MS, pick, type Random } from '../support/fuzz.js';

type Chunk = readonly [StreamName, Buffer];

const golden = new URL('../golden/', import.meta.url).pathname;
const explainRasp = closedValidator('rasp.schema.json');
const explainFcmp = closedValidator('fcmp.schema.json');
const EXITS = [
  { code: 0, signal: null },
  { code: 1, signal: null },
  { code: null, signal: 'SIGKILL' },
] as const;

function recorded(engine: string): { stdout: Buffer; stderr: Buffer }[] {
  return readdirSync(join(golden, engine)).map((name) => ({
    stdout: readFileSync(join(golden, engine, name, 'stdout.bin')),
    stderr: readFileSync(join(golden, engine, name, 'stderr.bin')),
  }));
}
const everything = ENGINES.flatMap(({ name }) =>
  recorded(name).flatMap(({ stdout, stderr }) => [stdout, stderr]),
).filter(({ length }) => length > 0);

function read(
  engine: string,
  chunks: Iterable<Chunk>,
  exit: (typeof EXITS)[number] = EXITS[0],
): { rasp: string; fcmp: string } {
  let rasp = '';
  let fcmp = '';
  const reader = new RecordingReader(
    {
      engine: findEngine(engine),
      mode: 'interactive',
      prompt: '',
      resumedFrom: null,
      clock: { now: () => 0 },
      ids: createCountingIds(),
    },
    { rasp: (bytes) => (rasp += bytes.toString('utf8')), fcmp: (bytes) => (fcmp += bytes.toString('utf8')) },
  );
  // A copy each time, which exposes a reader that keeps a view of a chunk.
  for (const [stream, chunk] of chunks) {
    const own = Buffer.from(chunk);
    reader.push(stream, own);
    own.fill(0x78);
  }
  reader.finish(exit);
  return { rasp, fcmp };
}

const parseLines = <T>(text: string): T[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as T);

function* cut(stream: StreamName, bytes: Buffer, random: Random): Generator<Chunk> {
  const most = pick(random, [1, 3, 40, 1000, 70_000]);
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + 1 + random(most));
    yield [stream, bytes.subarray(from, to)];
    from = to;
  }
}

function mixed(a: Iterable<Chunk>, b: Iterable<Chunk>, random: Random): Chunk[] {
  const [left, right] = [[...a], [...b]];
  const both: Chunk[] = [];
  while (left.length + right.length > 0) {
    const next = (right.length === 0 || (left.length > 0 && random(2) === 0) ? left : right).shift();
    if (next) both.push(next);
  }
  return both;
}

// The events of one stream; how much of the other was read by then decides the rest.
function ofStream(events: readonly RaspEvent[], stream: StreamName): string[] {
  return events
    .filter(({ raw_ref: ref }) => ref?.stream === stream)
    .map(({ event, data, source, raw_ref }) => JSON.stringify([event, data, source, raw_ref]));
}

function expectSound(engine: string, stdout: Buffer, stderr: Buffer, random: Random): void {
  const exit = pick(random, EXITS);
  const whole = read(
    engine,
    [
      ['stdout', stdout],
      ['stderr', stderr],
    ],
    exit,
  );
  const events = parseLines<RaspEvent>(whole.rasp);
  expect(measureCover(events, 'stdout')).toEqual({ covered: stdout.length, holes: 0, overlaps: 0 });
  expect(measureCover(events, 'stderr')).toEqual({ covered: stderr.length, holes: 0, overlaps: 0 });
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
  for (const event of events) expect(explainRasp(event), JSON.stringify(event).slice(0, 2000)).toBeNull();
  for (const event of parseLines(whole.fcmp))
    expect(explainFcmp(event), JSON.stringify(event).slice(0, 2000)).toBeNull();
  expect(
    read(
      engine,
      [
        ['stdout', stdout],
        ['stderr', stderr],
      ],
      exit,
    ),
  ).toEqual(whole);
  expect(read(engine, [...cut('stdout', stdout, random), ...cut('stderr', stderr, random)], exit)).toEqual(whole);
  expect(`${projectConversation(events[0]?.run_id ?? '', events).join('\n')}\n`).toBe(whole.fcmp);
  const interleaved = parseLines<RaspEvent>(
    read(engine, mixed(cut('stdout', stdout, random), cut('stderr', stderr, random), random), exit).rasp,
  );
  for (const stream of ['stdout', 'stderr'] as const)
    expect(ofStream(interleaved, stream)).toEqual(ofStream(events, stream));
}

describe.each(ENGINES.map(({ name }) => name))('%s', (engine) => {
  const recordings = recorded(engine);

  test(
    'damaged recordings are read whole, and to the same events however they are cut',
    async () => {
      await fuzz(`parser ${engine}`, 15, (random) => {
        const { stdout, stderr } = pick(random, recordings);
        const [out, err] = [
          damage(stdout, random, everything),
          damage(random(4) === 0 ? stdout : stderr, random, everything, 2),
        ];
        expectSound(engine, out, err, random);
      });
    },
    PATIENCE_MS,
  );

  test(
    'a value of eight megabytes in any place is read like a small one',
    async () => {
      const huge = 'x'.repeat(8 * 1024 * 1024);
      await fuzz(`huge ${engine}`, 1, (random) => {
        const lines = pick(random, recordings).stdout.toString('utf8').split('\n');
        const at = random(lines.length);
        // Replaces a text of the line, if it has one.
        const texts = [...(lines[at] ?? '').matchAll(/"(?:[^"\\]|\\.)*"/g)];
        const { index = 0, 0: old = '' } = texts.length > 0 ? pick(random, texts) : { index: 0, 0: '' };
        lines[at] = `${lines[at]?.slice(0, index)}"${huge}"${lines[at]?.slice(index + old.length)}`;
        const stdout = Buffer.from(lines.join('\n'));
        const whole = read(engine, [['stdout', stdout]]);
        expect(measureCover(parseLines<RaspEvent>(whole.rasp), 'stdout')).toEqual({
          covered: stdout.length,
          holes: 0,
          overlaps: 0,
        });
        expect(read(engine, cutEvery(stdout, 65_536)).rasp === whole.rasp).toBe(true);
      });
    },
    PATIENCE_MS,
  );

  test.each([
    ['opened objects', '{'],
    ['opened lists', '['],
    ['members that open', '{"a":'],
    ['objects', '{}'],
    ['quotes', '"'],
    ['backslashes', '\\'],
    ['escaped quotes', '\\"'],
    ['a text that does not end', '{"type":"a\\u00'],
    ['fences', '```json\n'],
    ['fences with an object that opens', '```json\n{\n'],
    ['blocks that open', '<Execution Info>'],
    ['blocks', '<Execution Info>\n{}\n</Execution Info>\n'],
    ['blocks that close', '</Execution Info>\n'],
    ['escapes', '\u001b['],
    ['returns', '\r'],
    ['line ends', '\n'],
    ['NULs', '\0'],
    ['NULs in lines', '\0\n'],
    ['no UTF-8', '\xff'],
    ['lines of an opened object', '{"a":[\n'],
    ['closing', '}\n'],
    ['texts', '"a"\n'],
    ['spaces', ' '],
    ['no JSON', 'word word\n'],
  ])('%s over and over cost no more than their length', (_what, pattern) => {
    const of = (bytes: number) => Buffer.from(pattern.repeat(Math.ceil(bytes / pattern.length)), 'latin1');
    // A line becomes one or two events of half a kilobyte.
    expectLinear(pattern.includes('\n') ? 4000 : 300_000, (bytes) => read(engine, cutEvery(of(bytes), 4096)));
  });

  test('a long recording costs no more than its length', () => {
    for (const { stdout } of recordings.filter(({ stdout: { length } }) => length > 0).slice(0, 1)) {
      expectLinear(300_000, (bytes) =>
        read(
          engine,
          cutEvery(Buffer.concat(Array.from({ length: Math.ceil(bytes / stdout.length) }, () => stdout)), 4096),
        ),
      );
    }
  });
});

function* cutEvery(bytes: Buffer, size: number): Generator<Chunk> {
  for (let at = 0; at < bytes.length; at += size) yield ['stdout', bytes.subarray(at, at + size)];
}

// Eight times the length may cost thirty times the work on a busy machine; quadratic work costs sixty-four.
function expectLinear(large: number, work: (bytes: number) => void): void {
  const cost = (bytes: number): number => {
    const before = process.cpuUsage();
    work(bytes);
    const { user, system } = process.cpuUsage(before);
    return user + system;
  };
  const most = cost(large);
  // Short input cannot be measured well, and is fast enough anyway.
  if (most < 100_000) return;
  const least = Math.min(cost(large / 8), cost(large / 8));
  expect(Math.min(most, cost(large)) / least, `${most / 1000} ms`).toBeLessThan(30);
}
