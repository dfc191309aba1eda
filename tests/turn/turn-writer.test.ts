// The writer of a running turn, on a real store: buffering, back-pressure, refused writers, and the times of buffered
// events.
import { singleHost } from '../../src/ownership/single-host.js';
import { startFold } from '../../src/run/run-fold.js';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { projectConversation } from '../../src/fcmp/fold.js';
import { toTimestamp } from '../../src/kernel/clock.js';
import { applyRunEvent } from '../../src/journal/apply-run-event.js';
import { RunJournal } from '../../src/journal/run-journal.js';
import { createCountingIds } from '../../src/kernel/ids.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import { LostRunError, TurnWriter } from '../../src/turn/turn-writer.js';
import { draft, type RaspDraft } from '../../src/rasp/draft.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { NO_FACTS } from '../../src/run/guards.js';
import { openDataDir, type DataDir } from '../../src/store/sqlite/data-dir.js';
import { openDatabase } from '../../src/store/sqlite/open-database.js';
import type { SqliteStore } from '../../src/store/sqlite/sqlite-store.js';
import { EMPTY_JOURNAL, type Actor, type RunRecord, type Store } from '../../src/store/store.js';
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
  const journal = new RunJournal(
    { runId: RUN, engine: 'codex', attempt: 1 },
    { heads: EMPTY_JOURNAL, state: startFold(null) },
    clock,
  );
  journal.add([draft('lifecycle.run.created', { engine: 'codex', execution_mode: 'interactive', prompt: 'go' })]);
  const flush = journal.drain()?.lines;
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
    { store: data.store, clock, ids: createCountingIds(), dataDir: '', files: singleHost(data.store).files },
    created.run,
    { event: 'turn.started', facts: NO_FACTS, epoch: created.run.epoch + 1 },
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
    append: async (change) => {
      await gate.opened;
      return data.store.append(change);
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
    await new Promise((resolve) => setImmediate(resolve));
    // Everything that the writer has requested is stored.
    await (data.store as SqliteStore).writes.drain();
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

test('a failed write is not retried forever', async () => {
  const run = await createRunning();
  let tries = 0;
  const store = alterStore(data.store, {
    append: async () => {
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
  // No timer is left that would keep the process alive.
  expect(timers.lengths()).toEqual([]);
});

test('a writer of an older turn is refused, reports it once, and stores nothing', async () => {
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

const ANN: Actor = { kind: 'user', name: 'ann' };
const BOB: Actor = { kind: 'user', name: 'bob' };
const readRequests = async (): Promise<object[]> =>
  (await data.store.readJournal(RUN, 'rasp', { limit: 100 }))
    .map((line) => JSON.parse(line) as RaspEvent)
    .filter(({ event }) => event.type === 'lifecycle.cancel.requested')
    .map((event) => event.data);
const loadRequest = async () => (await data.store.loadRun(RUN))?.cancel_requested;
const tick = () => new Promise((resolve) => setImmediate(resolve));

// A store that commits appends only after the gate opens.
function holdAppends(): { store: Store; gate: Gate } {
  const gate = new Gate();
  const store = alterStore(data.store, {
    append: async (change) => {
      await gate.opened;
      return data.store.append(change);
    },
  });
  return { store, gate };
}

// A control with an engine, and the reasons that the engine was ended for.
function attachControl(writer: TurnWriter): { control: TurnControl; ends: string[] } {
  const control = new TurnControl();
  const ends: string[] = [];
  control.attachWriter(writer);
  control.attach({ end: (reason) => void ends.push(reason) });
  return { control, ends };
}

describe('a cancel request', () => {
  test('is recorded as an event, and the run names its time and actor', async () => {
    const writer = writerOf(data.store, await createRunning());
    await writer.recordCancel({ at: now, actor: ANN });
    expect(await readRequests()).toEqual([{ requested_at: toTimestamp(now), actor: ANN }]);
    expect(await loadRequest()).toEqual({ at: now, actor: ANN });
    expect(writer.run).toEqual({ ...(await data.store.loadRun(RUN)), updated_at: writer.run.updated_at });
  });

  test('that comes second is not recorded, whether the first is stored or still being stored', async () => {
    const { store, gate } = holdAppends();
    const writer = writerOf(store, await createRunning());
    const both = [
      { at: now, actor: ANN },
      { at: now + 1, actor: BOB },
    ].map((each) => writer.recordCancel(each));
    gate.open();
    await Promise.all(both);
    await writer.recordCancel({ at: now + 2, actor: BOB });
    expect(await readRequests()).toEqual([{ requested_at: toTimestamp(now), actor: ANN }]);
    expect(await loadRequest()).toEqual({ at: now, actor: ANN });
  });

  test('is not recorded after the writer was closed, also while it is being closed', async () => {
    const { store, gate } = holdAppends();
    const writer = writerOf(store, await createRunning());
    void writer.add([said('one')]);
    const closing = writer.close();
    const late = writer.recordCancel({ at: now, actor: ANN });
    gate.open();
    await Promise.all([closing, late]);
    await writer.recordCancel({ at: now, actor: ANN });
    await writer.flush();
    expect([await readRequests(), await loadRequest(), writer.journal.pending]).toEqual([[], null, 0]);
  });

  test('is stored before the engine is ended', async () => {
    const { store, gate } = holdAppends();
    const { control, ends } = attachControl(writerOf(store, await createRunning()));
    const canceling = control.cancel({ at: now, actor: ANN });
    await tick();
    expect(ends).toEqual([]);
    gate.open();
    await canceling;
    expect([ends, await loadRequest(), control.canceledBy]).toEqual([['canceled'], { at: now, actor: ANN }, ANN]);
  });

  test('that comes second does not end the engine before the first is stored', async () => {
    const { store, gate } = holdAppends();
    const { control, ends } = attachControl(writerOf(store, await createRunning()));
    const both = [control.cancel({ at: now, actor: ANN }), control.cancel({ at: now, actor: BOB })];
    await tick();
    expect(ends).toEqual([]);
    gate.open();
    await Promise.all(both);
    expect([await loadRequest(), control.canceledBy]).toEqual([{ at: now, actor: ANN }, ANN]);
    expect(ends[0]).toBe('canceled');
  });

  test('that comes before the writer is recorded once the writer exists, by the first actor', async () => {
    const writer = writerOf(data.store, await createRunning());
    const control = new TurnControl();
    await control.cancel({ at: now, actor: ANN });
    await control.cancel({ at: now + 1, actor: BOB });
    control.attachWriter(writer);
    await writer.close();
    expect(await readRequests()).toEqual([{ requested_at: toTimestamp(now), actor: ANN }]);
    expect(control.canceledBy).toEqual(ANN);
  });

  test('that cannot be stored still ends the engine', async () => {
    const store = alterStore(data.store, { append: () => Promise.reject(new Error('the disk is full')) });
    const { control, ends } = attachControl(writerOf(store, await createRunning()));
    await control.cancel({ at: now, actor: ANN });
    expect(ends).toEqual(['canceled']);
  });

  test('that another host left in the row is recorded by the owner, and the row loses its mark', async () => {
    await createRunning();
    const request = { at: now, actor: BOB };
    const db = await openDatabase(join(dir, 'parley.db'));
    db.prepare('UPDATE runs SET cancel_requested_json = ?').run(JSON.stringify({ ...request, unrecorded: true }));
    db.close();
    const run = (await data.store.loadRun(RUN)) as RunRecord;
    expect(run.cancel_requested).toEqual({ ...request, unrecorded: true });
    const writer = writerOf(data.store, run);
    void writer.add([said('one')]);
    await writer.flush();
    expect([writer.run.cancel_requested, await loadRequest()]).toEqual([run.cancel_requested, run.cancel_requested]);
    await writer.recordCancel(run.cancel_requested ?? request);
    expect(await readRequests()).toEqual([{ requested_at: toTimestamp(now), actor: BOB }]);
    expect([writer.run.cancel_requested, await loadRequest()]).toEqual([request, request]);
  });
});
