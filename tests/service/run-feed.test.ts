// The feed of run changes: their order, readers that fall behind, and no messages without a change of state.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { EventStream } from '../../src/service/streams/event-stream.js';
import { RunFeed } from '../../src/service/streams/run-feed.js';
import { openDataDir } from '../../src/store/sqlite/data-dir.js';
import type { CommitListener, RunRecord, Store } from '../../src/store/store.js';
import { T0, ask, change, newRun } from '../store/conformance.js';
import { alterStore, alterSummaries } from '../support/altered-store.js';
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

// The names of the frames, with the run and its state.
function statusesOf(from: Reader): string[] {
  return from.frames.map((frame) =>
    [/^event: (.*)$/m.exec(frame)?.[1], /"run_id":"(.*?)"/.exec(frame)?.[1], /"status":"(.*?)"/.exec(frame)?.[1]]
      .filter((part) => part !== undefined)
      .join(' '),
  );
}

async function createRun(number: number): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

test('earlier runs are not sent; new changes are, in order, with their question', async () => {
  await createRun(1);
  const feed = new RunFeed({ store, clock: CLOCK, isRecovering: () => false });
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await timers.armed(HEARTBEAT_MS);
  const run = await createRun(2);
  await store.append(change(run, { set: { status: 'waiting_user' }, ask: ask('int_2') }));
  await reader.heard('int_2');
  expect(statusesOf(reader).slice(0, 2)).toEqual(['reset', 'ready']);
  expect(statusesOf(reader).at(-1)).toBe(`run ${run.run_id} waiting_user`);
  expect(reader.text).not.toContain('run_0001');
  feed.close();
  await feeding;
  expect(timers.lengths()).toEqual([]);
});

// A reader that is blocked at one change while so many more come: the frames that it received after the start.
async function fallBehind(changes: number): Promise<string[]> {
  const { run_id: id } = await createRun(1);
  let tell: CommitListener | undefined;
  const feed = new RunFeed({
    store: alterStore(store, {
      onCommitted: (listener) => {
        tell = listener;
        return () => {};
      },
    }),
    clock: CLOCK,
    isRecovering: () => false,
  });
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await timers.armed(HEARTBEAT_MS);
  reader.hold();
  // Neither an event of its journal alone nor a cancel request changes the run.
  tell?.({ run_id: id, origin: 'here', ms: 0 });
  for (let count = 0; count < changes + 1; count += 1) {
    tell?.({ run_id: id, status: 'running', origin: 'here', ms: 0 });
    if (count === 0) await timers.armed(STALLED_MS);
  }
  reader.release();
  await timers.armed(HEARTBEAT_MS);
  feed.close();
  await feeding;
  return statusesOf(reader).slice(2);
}

test('a slow reader gets each of many changes', async () => {
  const changes = await fallBehind(1999);
  expect(changes).toHaveLength(2000);
  expect(new Set(changes)).toEqual(new Set(['run run_0001 queued']));
});

test('a reader more than 2,000 changes behind gets a reset and none of them', async () => {
  expect(await fallBehind(2000)).toEqual(['run run_0001 queued', 'reset', 'ready']);
});

test('a run that is deleted meanwhile is reported as deleted', async () => {
  const { run_id: id } = await createRun(1);
  const altered = alterStore(
    store,
    alterSummaries(store, { loadRun: async (asked) => (asked === id ? null : store.summaries.loadRun(asked)) }),
  );
  const feed = new RunFeed({ store: altered, clock: CLOCK, isRecovering: () => false });
  const feeding = feed.feed(new EventStream(reader.response, timers));
  await timers.armed(HEARTBEAT_MS);
  await store.append(change((await store.loadRun(id)) as RunRecord, { set: { status: 'running' } }));
  await createRun(2);
  await reader.heard('run_0002');
  expect(statusesOf(reader)).toEqual(['reset', 'ready', 'gone run_0001', 'run run_0002 queued']);
  feed.close();
  await feeding;
});
