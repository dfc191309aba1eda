// Golden folders: recorded bytes and the expected events. Run `npm run bless` after reviewing the difference.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ENGINES, findEngine } from '../src/engines/registry.js';
import { projectConversation } from '../src/fcmp/fold.js';
import { createCountingIds } from '../src/kernel/ids.js';
import { RecordingReader } from '../src/audit/read-recording.js';
import { measureCover } from '../src/rasp/cover.js';
import { CATEGORIES, type RaspEvent, type StreamName } from '../src/rasp/event.js';
import { CHART } from '../src/run/statechart.js';
import { closedValidator } from './support/closed-validator.js';
import { seededRandom } from './support/seeded-random.js';

interface Turn {
  readonly exit: { code: number | null; signal: string | null };
  readonly resumed_from?: string;
}

interface Case {
  readonly engine: string;
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  readonly turn: Turn;
}

const root = new URL('./golden/', import.meta.url).pathname;
const bless = process.env.PARLEY_BLESS === '1';
const explainRasp = closedValidator('rasp.schema.json');
const explainFcmp = closedValidator('fcmp.schema.json');
const folders = readdirSync(root).flatMap((engine) =>
  readdirSync(join(root, engine)).map((name) => `${engine}/${name}`),
);

describe.each(folders)('%s', (folder) => {
  const dir = join(root, folder);
  const recorded = loadCase(folder, dir);
  const whole = read(recorded, [
    ['stdout', recorded.stdout],
    ['stderr', recorded.stderr],
  ]);

  test('gives the blessed events', () => {
    if (bless) {
      writeFileSync(join(dir, 'rasp.jsonl'), whole.rasp);
      writeFileSync(join(dir, 'fcmp.jsonl'), whole.fcmp);
    }
    expect(whole.rasp).toBe(load(dir, 'rasp.jsonl'));
    expect(whole.fcmp).toBe(load(dir, 'fcmp.jsonl'));
  });

  test('gives the same events byte by byte', () => {
    const bytes: Chunk[] = [
      ...slices('stdout', recorded.stdout, () => 1),
      ...slices('stderr', recorded.stderr, () => 1),
    ];
    const again = read(recorded, bytes);
    expect(again.rasp).toBe(whole.rasp);
    expect(again.fcmp).toBe(whole.fcmp);
  });

  test('gives the same events per stream in random, interleaved chunks', () => {
    for (let seed = 1; seed <= 5; seed += 1) {
      const random = seededRandom(seed);
      const stdout = slices('stdout', recorded.stdout, () => 1 + random(40));
      const stderr = slices('stderr', recorded.stderr, () => 1 + random(40));
      const mixed: Chunk[] = [];
      while (stdout.length + stderr.length > 0) {
        const next = (random(2) === 0 ? stdout : stderr).shift();
        if (next) mixed.push(next);
      }
      expect(byStream(read(recorded, mixed).events)).toEqual(byStream(whole.events));
    }
  });

  test('covers every byte of both streams exactly, with ranges that are equal or disjoint', () => {
    for (const stream of ['stdout', 'stderr'] as const) {
      expect(measureCover(whole.events, stream)).toEqual({ covered: recorded[stream].length, holes: 0, overlaps: 0 });
    }
  });

  test('gives raw text that is exactly the bytes of its raw_ref', () => {
    for (const event of whole.events) {
      if (event.event.category !== 'raw' || !event.raw_ref) continue;
      const bytes = recorded[event.raw_ref.stream]
        .subarray(event.raw_ref.byte_from, event.raw_ref.byte_to)
        .toString('utf8');
      expect(bytes.replace(/^\ufeff/, '').replace(/\r?\n$/, '')).toContain(event.data.text as string);
    }
  });

  test('gives events that fit the contract and name nothing beyond it', () => {
    for (const event of whole.events) expect(explainRasp(event), JSON.stringify(event)).toBeNull();
    for (const line of lines(whole.fcmp)) expect(explainFcmp(JSON.parse(line)), line).toBeNull();
    expect(whole.events.map((event) => event.seq)).toEqual(whole.events.map((_, index) => index + 1));
    expect(lines(whole.fcmp).map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(
      lines(whole.fcmp).map((_, index) => index + 1),
    );
  });

  test('is folded from the stored journal to the same conversation', () => {
    expect(projectConversation(whole.events[0]?.run_id ?? '', whole.events).join('\n')).toBe(whole.fcmp.trimEnd());
  });

  test('walks the chart edge by edge', () => {
    let state = 'queued';
    for (const event of whole.events) {
      if (event.event.type !== 'lifecycle.state.changed') continue;
      const { from, to, trigger } = event.data as { from: string; to: string; trigger: string };
      expect(from).toBe(state);
      expect(CHART.some((edge) => edge.from === from && edge.to === to && edge.on === trigger)).toBe(true);
      state = to;
    }
    expect(['waiting_user', 'succeeded', 'failed']).toContain(state);
    expect(whole.events.at(-1)?.event.type).toBe('lifecycle.state.changed');
  });
});

test('the golden folders together show all seven categories', () => {
  const seen = new Set(
    folders.flatMap((folder) =>
      lines(load(join(root, folder), 'rasp.jsonl')).map((line) => (JSON.parse(line) as RaspEvent).event.category),
    ),
  );
  expect([...seen].toSorted()).toEqual([...CATEGORIES].toSorted());
});

test('each event names its parser profile and a confidence between 0 and 1', () => {
  expect(ENGINES.map((engine) => engine.profile)).toEqual(
    expect.arrayContaining([
      'codex_ndjson',
      'codex_app_server',
      'gemini_json',
      'iflow_text',
      'opencode_ndjson',
      'rehearsal_ndjson',
    ]),
  );
  for (const folder of folders) {
    const { profile } = findEngine(folder.split('/')[0] ?? '');
    for (const line of lines(load(join(root, folder), 'rasp.jsonl'))) {
      const { source, raw_ref: ref } = JSON.parse(line) as RaspEvent;
      if (ref) expect(source.parser).toBe(profile);
      expect(source.confidence).toBeGreaterThanOrEqual(0);
      expect(source.confidence).toBeLessThanOrEqual(1);
    }
  }
});

type Chunk = [StreamName, Buffer];

function loadCase(folder: string, dir: string): Case {
  const turn = JSON.parse(load(dir, 'turn.json')) as Turn;
  return {
    engine: folder.split('/')[0] ?? '',
    stdout: readFileSync(join(dir, 'stdout.bin')),
    stderr: readFileSync(join(dir, 'stderr.bin')),
    turn,
  };
}

function load(dir: string, name: string): string {
  const path = join(dir, name);
  return existsSync(path) ? readFileSync(path, 'utf8') : '';
}

function read(recorded: Case, chunks: readonly Chunk[]): { rasp: string; fcmp: string; events: RaspEvent[] } {
  let rasp = '';
  let fcmp = '';
  const reader = new RecordingReader(
    {
      engine: findEngine(recorded.engine),
      mode: 'interactive',
      prompt: 'golden',
      resumedFrom: recorded.turn.resumed_from ?? null,
      clock: { now: () => 0 },
      ids: createCountingIds(),
    },
    { rasp: (bytes) => (rasp += bytes.toString('utf8')), fcmp: (bytes) => (fcmp += bytes.toString('utf8')) },
  );
  for (const [stream, chunk] of chunks) reader.push(stream, chunk);
  reader.finish(recorded.turn.exit);
  return { rasp, fcmp, events: lines(rasp).map((line) => JSON.parse(line) as RaspEvent) };
}

function slices(stream: StreamName, bytes: Buffer, size: () => number): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = Math.min(bytes.length, at + size());
    chunks.push([stream, bytes.subarray(at, end)]);
    at = end;
  }
  return chunks;
}

// The parts that must not depend on how the two streams interleave: seq depends on it, and so does the point from which
// the session is known.
function byStream(events: readonly RaspEvent[]): Record<string, unknown[]> {
  const groups: Record<string, unknown[]> = { stdout: [], stderr: [], none: [] };
  for (const event of events) {
    groups[event.raw_ref?.stream ?? 'none']?.push([
      event.event.type,
      event.data,
      event.source,
      event.correlation.item_id,
      event.raw_ref,
    ]);
  }
  return groups;
}

function lines(text: string): string[] {
  return text.split('\n').filter((line) => line !== '');
}
