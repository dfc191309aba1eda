// The writer of a running turn, on a real store: what it holds back, whom it makes wait, and who may write no more. And
// the times of what was held back.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { projectConversation } from '../../src/fcmp/fold.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { applyRunEvent } from '../../src/journal/apply-run-event.js';
import { RunJournal } from '../../src/journal/run-journal.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { LostRunError, TurnWriter } from '../../src/turn/turn-writer.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { NO_FACTS } from '../../src/run/guards.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { EMPTY_JOURNAL, type RunRecord, type Store } from '../../src/store/store.js';
import { alterStore } from '../support/altered-store.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const RUN = 'run_1';
const FLUSH_EVENTS = 4000;

let dir: string;
let data: DataDir;
let now: number;
const clock = { now: () => now };
const timers = new SimulatedTimers();

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'parley-writer-'));
  data = await openDataDir(dir, { pid: process.pid });
  now = Date.parse('2026-11-15T12:00:00.000Z');
});
afterEach(async () => {
  await data.close();
  rmSync(dir, { recursive: true });
});

async function createRunning(): Promise<RunRecord> {
  const journal = new RunJournal({ runId: RUN, engine: 'codex', attempt: 1 }, EMPTY_JOURNAL, clock);
  journal.add([draft('lifecycle.run.created', { engine: 'codex', execution_mode: 'interactive', prompt: 'go' })]);
  const flush = journal.take();
  if (!flush) throw new Error('nothing to store');
  const spec = {
    engine: 'codex',
    execution_mode: 'interactive',
    prompt: 'go',
    cwd: '/work',
    home: null,
    permission: 'workspace-write',
    runtime_options: {},
    labels: {},
  } as const;
  const created = await data.store.createRun({
    run_id: RUN,
    request_id: RUN,
    request_digest: '',
    spec,
    session_timeout_sec: 1200,
    handle: null,
    created_at: now,
    journal: flush,
    queue_limit: 1000,
  });
  if (!created.created) throw new Error(created.reason);
  const started = await applyRunEvent(
    { store: data.store, clock, ids: createCountingIds(), dataDir: '' },
    created.run,
    { event: 'turn.started', facts: NO_FACTS, set: { epoch: created.run.epoch + 1 } },
  );
  if (!started.applied) throw new Error('the turn has not begun');
  return started.run;
}

const said = (text: string): RaspDraft => draft('agent.message.final', { text });
const raw = (text: string): RaspDraft => draft('raw.stderr', { text });

function writerOf(store: Store, run: RunRecord, onFailure = () => {}): TurnWriter {
  return new TurnWriter({ store, clock, timers }, run, onFailure);
}

test('who adds much waits until it is stored, and who adds little does not', async () => {
  const gate = new Gate();
  const store = alterStore(data.store, {
    commit: async (change) => {
      await gate.opened;
      return data.store.commit(change);
    },
  });
  const writer = writerOf(store, await createRunning());
  expect(writer.add([said('one')])).toBeUndefined();
  let over = false;
  const wait = Promise.resolve(writer.add(Array.from({ length: FLUSH_EVENTS }, (_, index) => said(`${index}`)))).then(
    () => (over = true),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(over).toBe(false);
  gate.open();
  await wait;
  expect((await data.store.loadRun(RUN))?.heads.rasp_seq).toBe(writer.run.heads.rasp_seq);
  expect(await data.store.readJournal(RUN, 'rasp', { limit: 10_000 })).toHaveLength(2 + FLUSH_EVENTS + 1);
});

test('output after a silence is stored at once, then batched briefly, and for longer under heavy output', async () => {
  const writer = writerOf(data.store, await createRunning());
  const after = async (ms: number) => {
    timers.advance(ms);
    // Until what was asked for now is written: the store waits for the end of this moment.
    for (let round = 0; round < 2; round += 1) await new Promise((resolve) => setImmediate(resolve));
    return (await data.store.loadRun(RUN))?.heads.rasp_seq;
  };
  void writer.add([said('one')]);
  expect(await after(0)).toBe(3);
  void writer.add([said('two')]);
  void writer.add([said('three')]);
  expect(await after(9)).toBe(3);
  expect(await after(1)).toBe(5);
  void writer.add(Array.from({ length: 1000 }, (_, index) => said(`${index}`)));
  expect(await after(10)).toBe(1005);
  void writer.add([said('four')]);
  expect(await after(39)).toBe(1005);
  expect(await after(1)).toBe(1006);
  // Silence.
  expect(await after(10)).toBe(1006);
  void writer.add([said('five')]);
  expect(await after(0)).toBe(1007);
});

test('who adds large events waits, however few they are', async () => {
  const writer = writerOf(data.store, await createRunning());
  void writer.add([said('a')]);
  await new Promise((resolve) => setImmediate(resolve));
  expect(writer.add([said('x'.repeat(900 * 1024))])).toBeUndefined();
  await writer.add([said('x'.repeat(200 * 1024))]);
  expect((await data.store.loadRun(RUN))?.heads.rasp_seq).toBe(5);
});

test('what could not be stored is not tried again and again', async () => {
  const run = await createRunning();
  let tries = 0;
  const store = alterStore(data.store, {
    commit: async () => {
      tries += 1;
      throw new Error('the disk is gone');
    },
  });
  const writer = writerOf(store, run);
  void writer.add([said('one')]);
  for (let step = 0; step < 5; step += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    timers.advance(50);
    void writer.add([said('more')]);
  }
  await new Promise((resolve) => setImmediate(resolve));
  timers.advance(50);
  expect(tries).toBe(1);
  // No timer is left that would keep the process.
  expect(timers.lengths()).toEqual([]);
});

test('a writer of an older turn is refused, tells it once, and stores nothing', async () => {
  const run = await createRunning();
  let failures = 0;
  const writer = writerOf(data.store, { ...run, epoch: run.epoch - 1 }, () => (failures += 1));
  void writer.add([said('late')]);
  await expect(writer.flush()).rejects.toBeInstanceOf(LostRunError);
  await expect(writer.flush()).rejects.toBeInstanceOf(LostRunError);
  expect(failures).toBe(1);
  expect(await data.store.loadRun(RUN)).toEqual(run);
});

test('lines that were held back as an echo are found by the time at which they were printed', async () => {
  const writer = writerOf(data.store, await createRunning());
  void writer.add([said('one\ntwo')]);
  await writer.flush();
  now += 1000;
  const printed = now;
  void writer.add([raw('one'), raw('two')]);
  await writer.flush();
  const at = () => data.store.readJournal(RUN, 'fcmp', { fromTs: printed, toTs: printed, limit: 10 });
  expect(await at()).toEqual([]);
  now += 60_000;
  void writer.add([said('three')]);
  await writer.flush();
  expect((await at()).map((line) => JSON.parse(line) as object)).toMatchObject([
    { type: 'raw.stderr', ts: toTimestamp(printed), data: { text: 'one' } },
    { type: 'raw.stderr', ts: toTimestamp(printed), data: { text: 'two' } },
  ]);
  const rasp = (await data.store.readJournal(RUN, 'rasp', { limit: 100 })).map((line) => JSON.parse(line) as RaspEvent);
  expect(await data.store.readJournal(RUN, 'fcmp', { limit: 100 })).toEqual(projectConversation(RUN, rasp));
});
