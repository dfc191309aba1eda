// For any output of an engine: no throw, every byte covered exactly, the same events for any chunking.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ENGINES, findEngine } from '../../src/engines/registry.js';
import { projectConversation } from '../../src/fcmp/fold.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { RecordingReader } from '../../src/audit/read-recording.js';
import { measureCover } from '../../src/rasp/cover.js';
import type { RaspEvent, StreamName } from '../../src/rasp/event.js';
import { explainRasp } from '../../src/rasp/validate.js';
import { cut, mutation } from '../support/mutations.js';

const RUNS = Number(process.env.PARLEY_PROPERTY_RUNS ?? 400);
const SEED = Number(process.env['PARLEY_SEED'] ?? 20261115);

const golden = new URL('../golden/', import.meta.url).pathname;

function recordings(engine: string): { stdout: Buffer; stderr: Buffer }[] {
  return readdirSync(join(golden, engine)).map((name) => ({
    stdout: readFileSync(join(golden, engine, name, 'stdout.bin')),
    stderr: readFileSync(join(golden, engine, name, 'stderr.bin')),
  }));
}

function stream(engine: string): fc.Arbitrary<{ stdout: Buffer; stderr: Buffer }> {
  const mutated = fc
    .tuple(
      fc.constantFrom(...recordings(engine)),
      fc.array(mutation, { maxLength: 4 }),
      fc.array(mutation, { maxLength: 2 }),
    )
    .map(([recorded, changes, errors]) => ({
      stdout: changes.reduce((bytes, change) => change(bytes), recorded.stdout),
      stderr: errors.reduce((bytes, change) => change(bytes), recorded.stderr),
    }));
  const random = fc
    .tuple(fc.uint8Array({ maxLength: 400 }), fc.uint8Array({ maxLength: 200 }))
    .map(([stdout, stderr]) => ({ stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }));
  const text = fc
    .tuple(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ maxLength: 100 }))
    .map(([stdout, stderr]) => ({ stdout: Buffer.from(stdout), stderr: Buffer.from(stderr) }));
  const objects = fc
    .array(
      fc.dictionary(
        fc.constantFrom(
          'type',
          'item',
          'part',
          'content',
          'role',
          'status',
          'session_id',
          'sessionID',
          'thread_id',
          'text',
          'id',
          'error',
          'message',
          'x',
        ),
        fc.jsonValue(),
      ),
      { maxLength: 8 },
    )
    .map((lines) => ({
      stdout: Buffer.from(lines.map((line) => JSON.stringify(line)).join('\n')),
      stderr: Buffer.alloc(0),
    }));
  return fc.oneof(
    { arbitrary: mutated, weight: 6 },
    { arbitrary: random, weight: 1 },
    { arbitrary: text, weight: 1 },
    { arbitrary: objects, weight: 2 },
  );
}

function read(engine: string, chunks: Iterable<[StreamName, Buffer]>): { events: RaspEvent[]; fcmp: string[] } {
  let rasp = '';
  const fcmp: string[] = [];
  const reader = new RecordingReader(
    {
      engine: findEngine(engine),
      mode: 'interactive',
      prompt: '',
      resumedFrom: null,
      clock: { now: () => 0 },
      ids: createCountingIds(),
    },
    {
      rasp: (bytes) => (rasp += bytes.toString('utf8')),
      fcmp: (bytes) => fcmp.push(...bytes.toString('utf8').trimEnd().split('\n')),
    },
  );
  for (const [name, chunk] of chunks) reader.push(name, chunk);
  reader.finish({ code: 0, signal: null });
  return {
    events: rasp
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as RaspEvent),
    fcmp,
  };
}

describe.each(ENGINES.map((engine) => engine.name))('%s', (engine) => {
  test('damaged and random streams never throw, and every byte of both is covered exactly', () => {
    fc.assert(
      fc.property(stream(engine), fc.infiniteStream(fc.integer({ min: 1, max: 90 })), ({ stdout, stderr }, sizes) => {
        const whole = read(engine, [
          ['stdout', stdout],
          ['stderr', stderr],
        ]);
        expect(measureCover(whole.events, 'stdout')).toEqual({ covered: stdout.length, holes: 0, overlaps: 0 });
        expect(measureCover(whole.events, 'stderr')).toEqual({ covered: stderr.length, holes: 0, overlaps: 0 });
        for (const event of whole.events) expect(explainRasp(event)).toBeNull();
        const chunked = read(
          engine,
          (function* () {
            yield* cut('stdout', stdout, sizes);
            yield* cut('stderr', stderr, sizes);
          })(),
        );
        expect(chunked).toEqual(whole);
        expect(projectConversation(whole.events[0]?.run_id ?? '', whole.events)).toEqual(whole.fcmp);
      }),
      { numRuns: RUNS, seed: SEED },
    );
  });
});

test('an event nested deeper than can be written is kept as raw and the next line is parsed', () => {
  const deep =
    '{"type":"item.started","item":{"id":"i","type":"mcp_tool_call","server":"s","tool":"t",' +
    `"arguments":${'['.repeat(200_000)}${']'.repeat(200_000)}}}\n`;
  const stdout = Buffer.from(`${deep}{"type":"turn.started"}\n`);
  const { events } = read('codex', [['stdout', stdout]]);
  expect(events.map((event) => event.event.type)).toContain('raw.stdout');
  expect(events.find((event) => event.event.type === 'diagnostic.parser.warning')?.data.code).toBe('NESTING_TOO_DEEP');
  expect(events.some((event) => event.event.type === 'lifecycle.engine.progress')).toBe(true);
  expect(measureCover(events, 'stdout').covered).toBe(stdout.length);
});
