// The readers of a run's journal while it grows, and after: from any cursor, by seq and by time, with its counts.
import { readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { ReadableStream } from 'node:stream/web';
import { describe, expect, test } from 'vitest';
import { readFrames } from '../../src/client/read-frames.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { systemTimers } from '../../src/process/timers.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { EventStream } from '../../src/service/streams/event-stream.js';
import { JournalPages } from '../../src/service/streams/journal-pages.js';
import { streamJournal } from '../../src/service/streams/stream-journal.js';
import { createRoot, expectSound, journalOf, openBench, type Bench } from '../support/orchestrated.js';
import { STAND_INS } from '../support/stand-in.js';

const BUSY = '[[events 1200 40]][[stderr 3]][[utf8]]';

type Body = Parameters<typeof readFrames>[0];

// The events after the cursor in groups, as the service streams them.
async function* watch(
  bench: Bench,
  runId: string,
  protocol: 'rasp' | 'fcmp',
  cursor = 0,
): AsyncGenerator<readonly string[]> {
  const response = Object.assign(new PassThrough(), { writeHead: () => {} });
  const streaming = streamJournal(
    { pages: new JournalPages(bench.deps.store), wakeups: bench.orchestrator.wakeups },
    new EventStream(response as unknown as ServerResponse, systemTimers),
    { runId, protocol, cursor },
  );
  try {
    for await (const frames of readFrames(ReadableStream.from(response) as Body, () => {})) {
      const lines = frames.filter(({ event }) => event !== 'end').map(({ data }) => data);
      if (lines.length > 0) yield lines;
    }
  } finally {
    await streaming;
  }
}

async function collect(lines: AsyncIterable<readonly string[]>, limit = Infinity): Promise<string[]> {
  const collected: string[] = [];
  for await (const group of lines) {
    collected.push(...group);
    if (collected.length >= limit) break;
  }
  return collected.slice(0, limit);
}

async function play(bench: Bench, engine: string, prompt: string, rest: object = {}) {
  const { run_id: runId } = await bench.orchestrator.create({
    engine,
    prompt,
    execution_mode: 'interactive',
    permission: 'full',
    ...rest,
  });
  await bench.orchestrator.waitUntilIdle(runId);
  return expectSound(bench, runId);
}

describe('a reader', () => {
  test('that reconnects repeatedly with its cursor sees each event once, in order, live and stored', async () => {
    const bench = await openBench(createRoot());
    const { run_id: runId } = await bench.orchestrator.create({
      engine: 'codex',
      prompt: `${BUSY}[[ask Which?]]${BUSY}[[done 1]]`,
      execution_mode: 'interactive',
    });
    const answered = bench.orchestrator.waitUntilIdle(runId).then(async () => {
      const pending = await bench.data.store.loadPendingInteraction(runId);
      await bench.orchestrator.reply(runId, { interaction_id: pending?.interaction_id ?? '', response: 'A' });
    });
    for (const protocol of ['rasp', 'fcmp'] as const) {
      const seen: string[] = [];
      // Each connection breaks after a while, at its own place.
      for (let length = 1; ; length = (length * 7) % 601) {
        const news = await collect(watch(bench, runId, protocol, seen.length), length);
        seen.push(...news);
        if (news.length < length) break;
      }
      expect(seen).toEqual(await bench.data.store.readJournal(runId, protocol, { limit: 1_000_000 }));
      expect(seen.map((line) => (JSON.parse(line) as { seq: number }).seq)).toEqual(seen.map((_, index) => index + 1));
    }
    await answered;
    expect(await expectSound(bench, runId)).toMatchObject({ status: 'succeeded' });
    await bench.close();
  });

  test('gets only stored events', async () => {
    const bench = await openBench(createRoot());
    const { run_id: runId } = await bench.orchestrator.create({ engine: 'opencode', prompt: `${BUSY}[[done 1]]` });
    let groups = 0;
    for await (const group of watch(bench, runId, 'rasp')) {
      groups += 1;
      const last = JSON.parse(group.at(-1) ?? '') as RaspEvent;
      expect((await bench.data.store.loadRun(runId))?.heads.rasp_seq).toBeGreaterThanOrEqual(last.seq);
    }
    expect(groups).toBeGreaterThan(1);
    await bench.close();
  });

  test('of an ended run gets all of it and an end; a cursor at the end gets the end', async () => {
    const bench = await openBench(createRoot());
    const run = await play(bench, 'gemini', '[[done 1]]');
    expect(await collect(watch(bench, run.run_id, 'rasp'))).toHaveLength(run.heads.rasp_seq);
    expect(await collect(watch(bench, run.run_id, 'rasp', run.heads.rasp_seq))).toEqual([]);
    await bench.close();
  });
});

describe.each(STAND_INS)('%s', (engine) => {
  test('raw events are in the stream and in the file, and are found by seq and by time', async () => {
    const bench = await openBench(createRoot());
    const { run_id: runId } = await play(bench, engine, '[[stderr 4]][[done 1]]');
    const { rasp } = await journalOf(bench, runId);
    const raw = rasp.filter(({ event }) => event.category === 'raw');
    expect(raw.length).toBeGreaterThan(0);
    const file = readFileSync(join(runFolder(bench.data.path, runId).path, 'rasp.jsonl'), 'utf8')
      .trimEnd()
      .split('\n');
    for (const event of raw) {
      const line = JSON.stringify(event);
      expect(file).toContain(line);
      expect(
        await bench.data.store.readJournal(runId, 'rasp', { fromSeq: event.seq, toSeq: event.seq, limit: 10 }),
      ).toEqual([line]);
      const at = Date.parse(event.ts);
      const then = await bench.data.store.readJournal(runId, 'rasp', { fromTs: at, toTs: at, limit: 10_000 });
      expect(then).toContain(line);
      expect(then.every((other) => (JSON.parse(other) as RaspEvent).ts === event.ts)).toBe(true);
    }
    await bench.close();
  });

  test('the hit rate and the fallbacks are counted for each turn, each run, and by engine and profile', async () => {
    const bench = await openBench(createRoot());
    const first = await play(bench, engine, '[[events 20 10]][[ask Which?]][[events 10 10]][[done 1]]');
    const pending = await bench.data.store.loadPendingInteraction(first.run_id);
    await bench.orchestrator.reply(first.run_id, { interaction_id: pending?.interaction_id ?? '', response: 'A' });
    await bench.orchestrator.waitUntilIdle(first.run_id);
    const unknown = await play(bench, engine, '[[exit0]]', { execution_mode: 'auto' });
    expect(unknown).toMatchObject({ status: 'failed', attempt_number: 1, error: { code: 'COMPLETION_UNKNOWN' } });
    const ended = (await journalOf(bench, first.run_id)).rasp
      .filter(({ event }) => event.type === 'lifecycle.turn.ended')
      .map(
        ({ data }) => data as { parser: { units: number; parsed: number; fallbacks: number; hit_rate: number | null } },
      );
    expect(ended).toHaveLength(2);
    const [run] = await bench.data.store.sumTurns(first.run_id);
    const units = ended.reduce((sum, { parser }) => sum + parser.units, 0);
    expect(units).toBeGreaterThan(0);
    expect(run).toMatchObject({ engine, turns: 2, units, fallbacks: 0, hit_rate: 1, unknown: {} });
    const all = await bench.data.store.sumTurns();
    expect(all).toMatchObject([{ engine, profile: run?.profile, turns: 3 }]);
    const [reason] = (await journalOf(bench, unknown.run_id)).rasp
      .filter(({ event }) => event.type === 'diagnostic.completion.unknown')
      .map(({ data }) => data['reason_code']);
    expect(all[0]?.unknown).toEqual({ [String(reason)]: 1 });
    await bench.close();
  });

  test('an auto run stays at attempt 1 from its first event to its last', async () => {
    const bench = await openBench(createRoot());
    for (const prompt of ['[[answer Fine.]]', '[[ask Which?]]', '[[fail]]']) {
      const run = await play(bench, engine, prompt, { execution_mode: 'auto' });
      expect(run.attempt_number).toBe(1);
      expect(new Set((await journalOf(bench, run.run_id)).rasp.map((event) => event.attempt_number))).toEqual(
        new Set([1]),
      );
    }
    await bench.close();
  });
});
