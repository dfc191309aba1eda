// The feed of open questions: slow readers, changes during the first list, and readers that have disconnected.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EventStream } from '../../src/service/streams/event-stream.js';
import { InboxFeed } from '../../src/service/streams/inbox-feed.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { CommitListener, RunRecord, Store } from '../../src/store/store.js';
import { T0, ask, change, newRun } from '../store/conformance.js';
import { alterStore, alterSummaries } from '../support/altered-store.js';
import { countTicks } from '../support/count-ticks.js';
import { Gate } from '../support/gate.js';
import { createRoot } from '../support/orchestrated.js';
import { SimulatedTimers } from '../support/simulated-timers.js';
import { Reader } from './reader.js';

const HEARTBEAT_MS = 15_000;
const STALLED_MS = 30_000;
const CLOCK = { now: () => T0 };

let store: Store;
let close: () => Promise<void>;
let reader: Reader;
let timers: SimulatedTimers;

beforeEach(async () => {
  ({ store, close } = await openDataDir(createRoot(), { pid: process.pid }));
  reader = new Reader();
  timers = new SimulatedTimers();
});
afterEach(() => close());

async function askIn(number: number): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number));
  if (!outcome.created) throw new Error(outcome.reason);
  await store.append(change(outcome.run, { set: { status: 'waiting_user' }, ask: ask(`int_${number}`) }));
  return (await store.loadRun(outcome.run.run_id)) as RunRecord;
}

// A reader that is blocked at one change while so many more come: the frames that it received after the first list.
async function fallBehind(changes: number): Promise<string[]> {
  await askIn(1);
  let tell: CommitListener | undefined;
  const feed = new InboxFeed(
    alterStore(store, {
      onCommitted: (listener) => {
        tell = listener;
        return () => {};
      },
    }),
    CLOCK,
  );
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await timers.armed(HEARTBEAT_MS);
  expect(reader.texts).toEqual(['reset', 'pending int_1', 'ready']);
  reader.hold();
  for (let count = 0; count < changes + 1; count += 1) {
    tell?.({ run_id: 'run_0001', asked: 'int_1', origin: 'here', ms: 0 });
    if (count === 0) await timers.armed(STALLED_MS);
  }
  reader.release();
  await timers.armed(HEARTBEAT_MS);
  feed.close();
  await feeding;
  return reader.texts.slice(3);
}

test('a reader more than 2,000 changes behind gets the whole state again, and none of the changes', async () => {
  expect(await fallBehind(2000)).toEqual(['pending int_1', 'reset', 'pending int_1', 'ready']);
});

test('a reader that fell less behind gets each change', async () => {
  expect(await fallBehind(1999)).toEqual(Array.from({ length: 2000 }, () => 'pending int_1'));
});

test('changes during a full listing are sent after it', async () => {
  const run = await askIn(1);
  const listed = new Gate();
  const goOn = new Gate();
  const feed = new InboxFeed(
    alterStore(
      store,
      alterSummaries(store, {
        listPending: async (filter) => {
          const page = await store.summaries.listPending(filter);
          listed.open();
          await goOn.opened;
          return page;
        },
      }),
    ),
    CLOCK,
  );
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await listed.opened;
  await store.append(
    change(run, {
      set: { status: 'queued' },
      resolve: {
        interaction_id: 'int_1',
        state: 'answered',
        resolution: {
          at: T0,
          response: { text: 'A' },
          actor: { kind: 'user', name: 'ann' },
          idempotency_key: null,
          finish: false,
        },
      },
    }),
  );
  await askIn(2);
  goOn.open();
  await timers.armed(HEARTBEAT_MS);
  // As it was when it was listed, or as it is by now.
  expect(reader.texts).toEqual(['reset', 'pending int_1', 'ready', 'resolved int_1', 'pending int_2']);
  feed.close();
  await feeding;
});

test('a disconnected reader is not waited for, and others still get changes', async () => {
  const feed = new InboxFeed(store, CLOCK);
  const gone = new Reader();
  const goneTimers = new SimulatedTimers();
  const [leaving, staying] = [
    feed.feed(new EventStream(gone.response, goneTimers)),
    feed.feed(new EventStream(reader.response, timers)),
  ];
  await Promise.all([goneTimers.armed(HEARTBEAT_MS), timers.armed(HEARTBEAT_MS)]);
  gone.destroy();
  await leaving;
  expect(goneTimers.lengths()).toEqual([]);
  await askIn(1);
  await reader.heard('int_1');
  expect(reader.texts).toEqual(['reset', 'ready', 'pending int_1']);
  expect(gone.texts).toEqual(['reset', 'ready']);
  feed.close();
  await staying;
  expect(timers.lengths()).toEqual([]);
});

test('a page of questions is read with one read of their runs, and other work runs between the pages', async () => {
  const count = 250;
  await Promise.all(Array.from({ length: count }, (_, number) => askIn(number)));
  const reads: number[] = [];
  const single: string[] = [];
  const feed = new InboxFeed(
    alterStore(
      store,
      alterSummaries(store, {
        loadRun: (id) => {
          single.push(id);
          return store.summaries.loadRun(id);
        },
        loadRuns: (ids) => {
          reads.push(ids.length);
          return store.summaries.loadRuns(ids);
        },
      }),
    ),
    CLOCK,
  );
  const ticks = countTicks();
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await timers.armed(HEARTBEAT_MS);
  ticks.stop();
  expect(reader.texts).toHaveLength(count + 2);
  expect(reads).toEqual([100, 100, 50]);
  expect(single).toEqual([]);
  expect(ticks.at).toBeGreaterThan(count / 25);
  feed.close();
  await feeding;
});
