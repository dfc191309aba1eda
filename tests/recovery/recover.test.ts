// Recovery and cancellation of orphans on a real store. Each test holds one step and lets another writer change the run
// meanwhile.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import { JournalFiles } from '../../src/journal/journal-files.js';
import { runFolder } from '../../src/journal/run-folder.js';
import { CommitWakeups } from '../../src/journal/wakeups.js';
import { PeerWork } from '../../src/orchestrator/peer-work.js';
import { draft } from '../../src/rasp/draft.js';
import type { RaspEvent } from '../../src/rasp/event.js';
import { cancelOrphan, recoverOrphans, recoverWaitingRuns } from '../../src/recovery/recover.js';
import type { Actor, RunRecord, Store } from '../../src/store/store.js';
import { Residents } from '../../src/turn/residents/residents.js';
import { TurnControl } from '../../src/turn/turn-control.js';
import { TurnWriter } from '../../src/turn/turn-writer.js';
import { alterStore } from '../support/altered-store.js';
import { CommandBench } from '../support/command-bench.js';
import { Gate } from '../support/gate.js';

const ANN: Actor = { kind: 'user', name: 'ann' };
const BOB: Actor = { kind: 'user', name: 'bob' };
const OUTPUT = readFileSync(new URL('../golden/codex/exec-plain/stdout.bin', import.meta.url));
// More event-loop ticks than a store needs for a read, so that blocked work would have continued.
const TICKS = 20;

let bench: CommandBench;
let close: (() => Promise<void>)[];
beforeEach(async () => {
  bench = await CommandBench.open();
  close = [];
});
afterEach(async () => {
  for (const work of close) await work();
  await bench.close();
});

async function tick(): Promise<void> {
  for (let round = 0; round < TICKS; round += 1) await new Promise((resolve) => setImmediate(resolve));
}

const logOf = ({ run_id: runId }: RunRecord): string => runFolder(bench.data.path, runId).attempt(1).logs.stdout;

// A running run without a turn. Its log holds output that has no event yet.
async function createOrphan(): Promise<RunRecord> {
  const run = await bench.running();
  mkdirSync(dirname(logOf(run)), { recursive: true });
  writeFileSync(logOf(run), OUTPUT);
  return run;
}

// A running run without a turn whose log cannot be read: a folder is in its place.
async function createUnreadable(): Promise<RunRecord> {
  const run = await bench.running();
  mkdirSync(logOf(run), { recursive: true });
  return run;
}

async function requestCancel(run: RunRecord, actor: Actor): Promise<RunRecord> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  await writer.recordCancel({ at: bench.clock.now(), actor });
  return writer.run;
}

// Another owner of the run appends an event.
async function appendElsewhere(run: RunRecord): Promise<void> {
  const writer = new TurnWriter(bench.deps, run, () => {});
  void writer.add([draft('agent.message.final', { text: 'from the other owner' })]);
  await writer.close();
}

interface HeldReads {
  readonly store: Store;
  // Opens when the first reader of a journal has arrived.
  readonly arrived: Gate;
  readonly release: Gate;
  // How many times a journal was read from its beginning, once for each reading of the logs.
  count(): number;
}

// Ending a run from its logs starts with reading its journal. The store holds these reads.
function holdReads(): HeldReads {
  const [arrived, release] = [new Gate(), new Gate()];
  let count = 0;
  const store = alterStore(bench.store, {
    readJournal: async (runId, protocol, range) => {
      if (range.fromSeq === 1) count += 1;
      arrived.open();
      await release.opened;
      return bench.store.readJournal(runId, protocol, range);
    },
  });
  return { store, arrived, release, count: () => count };
}

interface Host {
  readonly work: PeerWork;
  readonly failures: unknown[];
  // Starts a turn of the run on this host.
  start(runId: string): void;
  cancel(run: RunRecord, actor: Actor): Promise<void>;
}

function hostWith(changes: Partial<OrchestratorDeps> = {}): Host {
  const deps = { ...bench.deps, ...changes };
  const failures: unknown[] = [];
  const controls = new Map<string, { control: TurnControl; over: Promise<void> }>();
  const journalFiles = new JournalFiles(
    bench.deps,
    (error) => void failures.push(error),
    'single',
    async () => {},
  );
  const work = new PeerWork({
    deps,
    recovery: { queued: 'requeue' },
    controls,
    residents: new Residents(bench.timers, { parkAfterMs: 1000, max: 1 }, () => {}),
    journalFiles,
    cancel: async () => {},
    onFailure: (_runId, error) => void failures.push(error),
  });
  const wakeups = new CommitWakeups(bench.store);
  close.push(async () => {
    await work.close();
    await journalFiles.close();
    wakeups.close();
  });
  return {
    work,
    failures,
    start: (runId) => void controls.set(runId, { control: new TurnControl(), over: Promise.resolve() }),
    cancel: (run, actor) => work.cancelElsewhere(run, actor, wakeups),
  };
}

// A host whose own turn of the run starts while the run is taken over.
function hostThatStarts(run: RunRecord): Host {
  const { ownership } = bench.deps;
  const host: Host = hostWith({
    ownership: {
      ...ownership,
      takeOver: async (taken) => {
        host.start(run.run_id);
        return ownership.takeOver(taken);
      },
    },
  });
  return host;
}

async function reload({ run_id: runId }: RunRecord): Promise<RunRecord> {
  return (await bench.store.loadRun(runId)) as RunRecord;
}

const isEnd = ({ event, data }: RaspEvent): boolean =>
  event.type === 'lifecycle.state.changed' && ['succeeded', 'failed', 'canceled'].includes(String(data['to']));

async function endsOf({ run_id: runId }: RunRecord): Promise<object[]> {
  return (await bench.eventsOf(runId)).filter(isEnd).map(({ data }) => data);
}

async function countMessages({ run_id: runId }: RunRecord): Promise<number> {
  return (await bench.eventsOf(runId)).filter(({ event }) => event.type === 'agent.message.final').length;
}

describe('recovery and a cancel of the same orphan', () => {
  test('a cancel that starts second does not read the logs, and the run ends as canceled', async () => {
    const run = await createOrphan();
    const reads = holdReads();
    const host = hostWith({ store: reads.store });
    const recovering = recoverOrphans(host.work.recovery);
    await reads.arrived.opened;
    const canceling = host.cancel(run, ANN);
    await tick();
    expect(reads.count()).toBe(1);
    reads.release.open();
    await Promise.all([recovering, canceling]);
    expect(reads.count()).toBe(1);
    expect(await endsOf(run)).toMatchObject([{ to: 'canceled', trigger: 'run.canceled', actor: ANN }]);
    expect([await countMessages(run), host.failures]).toEqual([1, []]);
    expect(await cancelOrphan(host.work.recovery, run.run_id, ANN)).toBe(false);
  });

  test('recovery that starts second does not read the logs, and leaves the canceled run alone', async () => {
    const run = await createOrphan();
    const reads = holdReads();
    const host = hostWith({ store: reads.store });
    const canceling = host.cancel(run, ANN);
    await reads.arrived.opened;
    const recovering = recoverOrphans(host.work.recovery);
    await tick();
    expect(reads.count()).toBe(1);
    reads.release.open();
    await Promise.all([recovering, canceling]);
    expect(reads.count()).toBe(1);
    expect(await endsOf(run)).toMatchObject([{ to: 'canceled', actor: ANN }]);
    expect([await countMessages(run), host.failures]).toEqual([1, []]);
  });
});

test('an orphan with a recorded cancel request is canceled in the name of the first actor', async () => {
  const run = await requestCancel(await createOrphan(), ANN);
  expect(await cancelOrphan(hostWith().work.recovery, run.run_id, BOB)).toBe(true);
  expect(await endsOf(run)).toMatchObject([{ to: 'canceled', actor: ANN }]);
});

describe('a turn that starts here while ownership decides', () => {
  test('is not ended by a cancel from elsewhere', async () => {
    const run = await createOrphan();
    const host = hostThatStarts(run);
    expect(await cancelOrphan(host.work.recovery, run.run_id, ANN)).toBe(false);
    expect(await reload(run)).toEqual(run);
  });

  test('is not ended by recovery', async () => {
    const run = await createOrphan();
    const host = hostThatStarts(run);
    await recoverOrphans(host.work.recovery);
    // Recovery has counted a crash of the host, and nothing else has changed.
    expect([await reload(run), host.failures]).toEqual([{ ...run, crashes: 1 }, []]);
  });
});

describe('an orphan whose logs cannot be read', () => {
  test('is canceled by the actor of its recorded cancel request', async () => {
    const run = await requestCancel(await createUnreadable(), ANN);
    const host = hostWith();
    await recoverOrphans(host.work.recovery);
    expect(await reload(run)).toMatchObject({ status: 'canceled', error: null, cancel_requested: { actor: ANN } });
    expect(await endsOf(run)).toMatchObject([{ to: 'canceled', trigger: 'run.canceled', actor: ANN }]);
    expect(host.failures).toHaveLength(1);
  });

  test('fails without a cancel request, and the error is reported', async () => {
    const run = await createUnreadable();
    const host = hostWith();
    await recoverOrphans(host.work.recovery);
    expect(await reload(run)).toMatchObject({
      status: 'failed',
      error: {
        code: 'ORCHESTRATOR_RESTART_INTERRUPTED',
        message: expect.stringContaining('could not be read') as string,
      },
    });
    expect(host.failures).toHaveLength(1);
  });

  test('is not canceled by a caller, who gets the error', async () => {
    const run = await createUnreadable();
    const host = hostWith();
    await expect(cancelOrphan(host.work.recovery, run.run_id, ANN)).rejects.toThrow(logOf(run));
    expect(await reload(run)).toEqual(run);
  });
});

describe('a waiting run after a crash', () => {
  test('is canceled if its cancel request was recorded before its turn ended with a question', async () => {
    const { run, question } = await bench.ask(await requestCancel(await bench.running(), ANN));
    const host = hostWith();
    await recoverWaitingRuns(host.work.recovery);
    expect(await reload(run)).toMatchObject({ status: 'canceled', cancel_requested: { actor: ANN } });
    expect(await endsOf(run)).toMatchObject([{ from: 'waiting_user', to: 'canceled', actor: ANN }]);
    expect(await bench.store.loadInteraction(question.interaction_id)).toMatchObject({
      state: 'canceled',
      resolution: { actor: ANN },
    });
    expect(host.failures).toEqual([]);
  });

  test('keeps waiting without a cancel request', async () => {
    const { run } = await bench.waiting();
    const host = hostWith();
    await recoverWaitingRuns(host.work.recovery);
    expect([(await reload(run)).status, host.failures]).toEqual(['waiting_user', []]);
  });
});

describe('an orphan that another writer changes while its logs are read', () => {
  test.each(['recovery', 'a cancel'])('still running: %s leaves it to the other writer', async (name) => {
    const run = await createOrphan();
    const reads = holdReads();
    const host = hostWith({ store: reads.store });
    const ending =
      name === 'recovery'
        ? recoverOrphans(host.work.recovery)
        : cancelOrphan(host.work.recovery, run.run_id, ANN).then((taken) => expect(taken).toBe(true));
    await reads.arrived.opened;
    await appendElsewhere(run);
    const changed = await reload(run);
    reads.release.open();
    await ending;
    expect([await reload(run), host.failures]).toEqual([changed, []]);
  });

  test.each(['recovery', 'a cancel'])('ended: %s writes no second end and reports nothing', async (name) => {
    const run = await createOrphan();
    const reads = holdReads();
    const host = hostWith({ store: reads.store });
    const ending =
      name === 'recovery' ? recoverOrphans(host.work.recovery) : cancelOrphan(host.work.recovery, run.run_id, ANN);
    await reads.arrived.opened;
    await bench.apply(run, { event: 'run.canceled', actor: BOB });
    reads.release.open();
    await ending;
    expect(await endsOf(run)).toMatchObject([{ to: 'canceled', actor: BOB }]);
    expect(host.failures).toEqual([]);
  });
});
