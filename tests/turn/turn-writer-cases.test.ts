// The writer of a running turn: cancel requests, silences, its close and its limits, on a real store.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toTimestamp } from '../../src/kernel/clock.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import type { RunAppend, RunRecord } from '../../src/store/store.js';
import { reportSilence } from '../../src/turn/report-silence.js';
import { LostRunError, TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench, T0 } from '../support/command-bench.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const ANN = { kind: 'token', name: 'ann' } as const;
const said = (text: string): RaspDraft => draft('agent.message.final', { text });

let bench: CommandBench;
let timers: SimulatedTimers;
let appends: RunAppend[];
beforeAll(async () => {
  bench = await CommandBench.open();
});
beforeEach(() => {
  bench.reset();
  timers = new SimulatedTimers();
  appends = [];
});
afterAll(() => bench.close());

function writerOf(run: RunRecord, append: (change: RunAppend) => ReturnType<typeof bench.store.append>): TurnWriter {
  const store = alterStore(bench.store, {
    append: (change) => {
      appends.push(change);
      return append(change);
    },
  });
  return new TurnWriter({ store, clock: bench.clock, timers }, run, () => {});
}

const open = (run: RunRecord): TurnWriter => writerOf(run, (change) => bench.store.append(change));
const typesOf = async ({ run_id: runId }: RunRecord) => (await bench.eventsOf(runId)).map(({ event }) => event.type);
const lastOf = async ({ run_id: runId }: RunRecord) => (await bench.eventsOf(runId)).at(-1)?.data;
const tick = () => new Promise((resolve) => setImmediate(resolve));

const many = (count: number) => Array.from({ length: count }, (_, index) => said(`${index}`));

describe('a cancel request', () => {
  test('is stored at once, with its time and who asked', async () => {
    const run = await bench.running();
    const writer = open(run);
    await writer.recordCancel({ at: T0 + 5, actor: ANN });
    expect(await lastOf(run)).toEqual({ requested_at: toTimestamp(T0 + 5), actor: ANN });
    expect(writer.run.cancel_requested).toEqual({ at: T0 + 5, actor: ANN });
    expect((await bench.store.loadRun(run.run_id))?.cancel_requested).toEqual({ at: T0 + 5, actor: ANN });
  });

  test('of nobody has no actor', async () => {
    const run = await bench.running();
    await open(run).recordCancel({ at: T0, actor: null });
    expect(await lastOf(run)).toEqual({ requested_at: toTimestamp(T0) });
  });

  test('is recorded once per run', async () => {
    const run = await bench.running();
    const writer = open(run);
    await writer.recordCancel({ at: T0, actor: ANN });
    await writer.recordCancel({ at: T0 + 1, actor: null });
    expect((await typesOf(run)).filter((type) => type === 'lifecycle.cancel.requested')).toHaveLength(1);
  });

  test('is not recorded after the turn was closed', async () => {
    const run = await bench.running();
    const writer = open(run);
    await writer.close();
    await writer.recordCancel({ at: T0, actor: ANN });
    expect(await typesOf(run)).not.toContain('lifecycle.cancel.requested');
  });
});

test('the close of a writer stores everything that was added', async () => {
  const run = await bench.running();
  const writer = open(run);
  void writer.add([said('one')]);
  void writer.add([said('two')]);
  await writer.close();
  expect((await typesOf(run)).slice(-2)).toEqual(['agent.message.final', 'agent.message.final']);
  expect(writer.run.heads).toEqual((await bench.store.loadRun(run.run_id))?.heads);
  expect(timers.lengths()).toEqual([]);
});

test('a flush without events stores nothing', async () => {
  const writer = open(await bench.running());
  expect(writer.add([])).toBeUndefined();
  expect(timers.lengths()).toEqual([]);
  await writer.flush();
  expect(appends).toEqual([]);
  expect(timers.lengths()).toEqual([]);
});

test('an append that is refused is reported with its reason', async () => {
  const run = await bench.running();
  const writer = writerOf(run, async () => ({ committed: false, reason: 'epoch' }) as never);
  void writer.add([said('late')]);
  await expect(writer.flush()).rejects.toThrow(
    new LostRunError(`run ${run.run_id} was changed by another writer (epoch)`),
  );
});

test('after a failed append nothing more is appended, and every flush rejects with the first error', async () => {
  const error = new Error('the disk is full');
  const writer = writerOf(await bench.running(), () => Promise.reject(error));
  void writer.add([said('one')]);
  await expect(writer.flush()).rejects.toBe(error);
  void writer.add([said('two')]);
  await expect(writer.flush()).rejects.toBe(error);
  await expect(writer.close()).rejects.toBe(error);
  expect(appends).toHaveLength(1);
});

describe('output is gathered', () => {
  test('for 40 ms from 500 events on, else for 10 ms', async () => {
    for (const [count, ms] of [
      [499, 10],
      [500, 40],
    ] as const) {
      const writer = open(await bench.running());
      void writer.add(many(count));
      expect(timers.lengths()).toEqual([ms]);
      await writer.close();
    }
  });

  test('and a timer without new events sets no other', async () => {
    const writer = open(await bench.running());
    void writer.add([said('one')]);
    await writer.flush();
    expect(timers.lengths()).toEqual([]);
    void writer.add([said('two')]);
    await tick();
    timers.advance(10);
    expect(timers.lengths()).toEqual([]);
  });

  test('until one mebibyte is pending: then the caller waits', async () => {
    const writer = open(await bench.running());
    expect(writer.add([said('first')])).toBeUndefined();
    await tick();
    // The size of an event without its text.
    writer.journal.add([said('')]);
    const size = writer.journal.pendingBytes;
    expect(writer.add([said('x'.repeat(1024 * 1024 - 2 * size - 1))])).toBeUndefined();
    await writer.flush();
    const wait = writer.add([said('x'.repeat(1024 * 1024 - size))]);
    expect(wait).toBeInstanceOf(Promise);
    await wait;
  });
});

describe('a silence', () => {
  const hooks = [
    { name: 'all', events: ['silent', 'failed'] },
    { name: 'other', events: ['failed'] },
  ] as const;

  test('is stored with its notifications, at the time of the last event', async () => {
    const run = await bench.running();
    const writer = open(run);
    bench.clock.at = T0 + 60_000;
    const deps = { ...bench.deps, hooks, runUrl: (runId: string) => `http://here/${runId}` };
    const options = parseRuntimeOptions({ silence_notice_sec: 60 });
    reportSilence({ deps, options, writer }, true);
    await writer.flush();
    const event = (await bench.eventsOf(run.run_id)).at(-1);
    expect(event).toMatchObject({
      ts: toTimestamp(T0),
      event: { type: 'lifecycle.turn.silent' },
      data: { noticed_at: toTimestamp(T0 + 60_000), silent_sec: 60, tool_running: true },
    });
    expect(appends.at(-1)?.deliveries).toMatchObject([
      {
        hook: 'all',
        type: 'run.silent',
        payload: { silent_since: toTimestamp(T0), at: toTimestamp(T0 + 60_000), url: `http://here/${run.run_id}` },
      },
    ]);
    // The notifications are stored once.
    void writer.add([said('more')]);
    await writer.flush();
    expect(appends.at(-1)?.deliveries).toEqual([]);
  });

  test('without hooks and without a URL notifies nobody', async () => {
    const run = await bench.running();
    const writer = open(run);
    const options = parseRuntimeOptions({});
    reportSilence({ deps: bench.deps, options, writer }, false);
    await writer.flush();
    expect(await lastOf(run)).toMatchObject({ tool_running: false, silent_sec: 1800 });
    expect(appends.at(-1)?.deliveries).toEqual([]);
    reportSilence({ deps: { ...bench.deps, hooks }, options, writer }, false);
    await writer.flush();
    expect(appends.at(-1)?.deliveries).toMatchObject([{ payload: { url: null } }]);
  });

  test('is stored without waiting for other events, and its failure rejects nothing', async () => {
    const run = await bench.running();
    const writer = writerOf(run, () => Promise.reject(new Error('the disk is gone')));
    writer.addSilence(
      draft('lifecycle.turn.silent', { noticed_at: toTimestamp(T0), silent_sec: 1, tool_running: false }),
      [],
    );
    await tick();
    await tick();
    expect(appends).toHaveLength(1);
  });
});
