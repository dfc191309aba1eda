// Streams of stored events: nothing is missed between a read and the following wait, and a disconnected reader delays
// nothing.
import type { ServerResponse } from 'node:http';
import { Writable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CommitWakeups } from '../../src/journal/wakeups.js';
import { EventStream } from '../../src/service/streams/event-stream.js';
import { JournalPages } from '../../src/service/streams/journal-pages.js';
import { streamJournal } from '../../src/service/streams/stream-journal.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { T0, change, flush, newRun } from '../store/conformance.js';
import { alterStore } from '../support/altered-store.js';
import { countTicks } from '../support/count-ticks.js';
import { Gate } from '../support/gate.js';
import { createRoot } from '../support/orchestrated.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { Reader } from './reader.js';

const HEARTBEAT_MS = 15_000;

let store: Store;
let close: () => Promise<void>;
let run: RunRecord;
let reader: Reader;
let timers: SimulatedTimers;
let wakeups: CommitWakeups;

beforeEach(async () => {
  ({ store, close } = await openDataDir(createRoot(), { pid: process.pid }));
  // With the events 1 and 2.
  const outcome = await store.createRun(newRun(1));
  if (!outcome.created) throw new Error(outcome.reason);
  run = outcome.run;
  reader = new Reader();
  timers = new SimulatedTimers();
  wakeups = new CommitWakeups(store);
});
afterEach(async () => {
  wakeups.close();
  await close();
});

const stream = (from: Store, cursor = 0) =>
  streamJournal({ pages: new JournalPages(from), wakeups }, new EventStream(reader.response, timers), {
    runId: run.run_id,
    protocol: 'rasp',
    cursor,
  });
const seqs = (): (string | undefined)[] => reader.frames.map((frame) => /^(?:id|event): (.*)$/m.exec(frame)?.[1]);

test('an event that is committed between the look and the wait is not missed, nor is the end', async () => {
  const looked = [new Gate(), new Gate()];
  const goOn = [new Gate(), new Gate()];
  let empty = 0;
  // If other hosts write as well, each check is a read of the store.
  const streaming = stream(
    alterStore(store, {
      isComplete: false,
      readLines: async (...asked) => {
        const lines = await store.readLines(...asked);
        if (lines || empty === goOn.length) return lines;
        const at = empty;
        empty += 1;
        looked[at]?.open();
        await goOn[at]?.opened;
        return lines;
      },
    }),
  );
  await looked[0]?.opened;
  await store.append(change(run, { journal: flush(3, 1, null, T0 + 10 * 3) }));
  goOn[0]?.open();
  await reader.heard('id: 3');
  await looked[1]?.opened;
  const now = (await store.loadRun(run.run_id)) as RunRecord;
  await store.append(change(now, { set: { status: 'canceled' }, journal: flush(4, 1, null, T0 + 10 * 4) }));
  goOn[1]?.open();
  await streaming;
  expect(seqs()).toEqual(['1', '2', '3', '4', 'end']);
  expect(reader.frames.at(-1)).toBe(`event: end\ndata: {"run_id":"${run.run_id}","status":"canceled","seq":4}`);
  expect(wakeups.watched).toBe(0);
});

test('where nobody else writes the end comes too, whenever it is committed', async () => {
  for (const turns of [0, 1, 2, 5]) {
    const outcome = await store.createRun(newRun(turns + 2));
    if (!outcome.created) throw new Error(outcome.reason);
    const own = new Reader();
    const streaming = streamJournal(
      { pages: new JournalPages(store), wakeups },
      new EventStream(own.response, timers),
      { runId: outcome.run.run_id, protocol: 'rasp', cursor: 0 },
    );
    await own.heard('id: 2');
    const stored = await store.append(change(outcome.run, { journal: flush(3, 1, null, T0 + 1_000_000) }));
    if (!stored.committed) throw new Error(stored.reason);
    // Before it was sent, while it is, or after.
    for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    await store.append(
      change(
        { ...outcome.run, heads: stored.heads },
        { set: { status: 'canceled' }, journal: flush(4, 1, null, T0 + 2_000_000) },
      ),
    );
    await streaming;
    expect(own.frames.map((frame) => /^(?:id|event): (.*)$/m.exec(frame)?.[1])).toEqual(['1', '2', '3', '4', 'end']);
  }
});

test('an event that is committed while it waits comes, each once', async () => {
  const streaming = stream(store, 1);
  await timers.armed(HEARTBEAT_MS);
  await store.append(change(run, { journal: flush(3, 2, null, T0 + 10 * 3) }));
  await reader.heard('id: 4');
  expect(seqs()).toEqual(['2', '3', '4']);
  reader.destroy();
  await streaming;
});

test('a disconnected reader is not waited for, and its run is no longer watched', async () => {
  const streaming = stream(store);
  await timers.armed(HEARTBEAT_MS);
  expect(wakeups.watched).toBe(1);
  reader.destroy();
  await streaming;
  expect(wakeups.watched).toBe(0);
  expect(timers.lengths()).toEqual([]);
});

test('other work runs while a reader that keeps up gets a long journal', async () => {
  const outcome = await store.append(change(run, { journal: flush(3, 60_000, null, T0 + 30) }));
  if (!outcome.committed) throw new Error(outcome.reason);
  const ticks = countTicks();
  const perTick = new Map<number, number>();
  const counting = new Writable({
    highWaterMark: Number.MAX_SAFE_INTEGER,
    write: (chunk: Buffer, _encoding, done) => {
      perTick.set(ticks.at, (perTick.get(ticks.at) ?? 0) + chunk.length);
      done();
    },
  });
  const response = Object.assign(counting, { writeHead: () => counting }) as unknown as ServerResponse;
  const streaming = streamJournal({ pages: new JournalPages(store), wakeups }, new EventStream(response, timers), {
    runId: run.run_id,
    protocol: 'rasp',
    cursor: 0,
  });
  await timers.armed(HEARTBEAT_MS);
  ticks.stop();
  const bytes = [...perTick.values()];
  expect(bytes.reduce((sum, each) => sum + each, 0)).toBeGreaterThan(4 * 1024 * 1024);
  // A tick ends with the page that reaches 1 MiB.
  expect(Math.max(...bytes)).toBeLessThan(1124 * 1024);
  counting.destroy();
  await streaming;
});
