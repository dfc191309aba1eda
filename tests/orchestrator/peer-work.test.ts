// The work of a host among others, with a store and other hosts that the test controls: reads that come late.
import { describe, expect, test } from 'vitest';
import { PeerWork } from '../../src/orchestrator/peer-work.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { JournalFiles } from '../../src/journal/journal-files.js';
import type { Residents } from '../../src/turn/residents/residents.js';
import type { TurnControl } from '../../src/turn/turn-control.js';
import type { Committed, RunRecord } from '../../src/store/store.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const RUN = 'run_1';
const ignore = (): void => {};
const soon = () => new Promise((resolve) => setImmediate(resolve));

function scene() {
  let hear: (commit: Committed) => void = ignore;
  let answer: (run: Partial<RunRecord>) => void = ignore;
  const [ended, canceled, released]: [string[], string[], string[]] = [[], [], []];
  const gate = { release: new Gate() };
  const idleResidents = new Map<string, object>();
  const controls = new Map<string, { control: TurnControl; over: Promise<void> }>();
  const timers = new SimulatedTimers();
  const ownership = { onLost: () => {}, pollMs: 1000 };
  const peers = {
    release: async (runId: string) => {
      released.push(runId);
      await gate.release.opened;
      throw new Error('away');
    },
  };
  const store = {
    onCommitted: (listener: typeof hear) => {
      hear = listener;
      return () => {};
    },
    onMissed: () => () => {},
    loadRun: () => new Promise((resolve) => (answer = resolve as typeof answer)),
  } as unknown as OrchestratorDeps['store'];
  const residents = {
    has: (runId: string) => idleResidents.has(runId),
    kept: () => [...idleResidents.keys()],
    idleResidentOf: (runId: string) => idleResidents.get(runId) ?? null,
    end: async (runId: string) => void ended.push(runId),
  } as unknown as Residents;
  const work = new PeerWork({
    deps: { store, ownership, peers, timers, dataDir: '/nowhere' } as unknown as OrchestratorDeps,
    recovery: { queued: 'requeue' },
    controls,
    residents,
    journalFiles: {} as JournalFiles,
    cancel: async (runId) => void canceled.push(runId),
    onFailure: () => {},
  });
  const play = (): void => void controls.set(RUN, { control: {} as TurnControl, over: Promise.resolve() });
  return {
    work,
    timers,
    idleResidents,
    controls,
    ended,
    canceled,
    released,
    gate,
    play,
    notify: () => hear({ run_id: RUN, origin: 'elsewhere', ms: 0 }),
    recoverRun: async (run: Partial<RunRecord>) => {
      answer({ cancel_requested: null, ...run });
      await soon();
    },
  };
}

test('a process whose run continued elsewhere is ended', async () => {
  const { idleResidents, notify, recoverRun, ended } = scene();
  idleResidents.set(RUN, {});
  notify();
  await recoverRun({ status: 'succeeded' });
  expect(ended).toEqual([RUN]);
});

test('a process that began to wait while it was looked is left alone', async () => {
  const { idleResidents, controls, play, notify, recoverRun, ended } = scene();
  play();
  notify();
  // The turn has ended meanwhile, and its process waits.
  idleResidents.set(RUN, {});
  controls.delete(RUN);
  await recoverRun({ status: 'running' });
  expect(ended).toEqual([]);
});

test('another process than the one that waited when it was looked is left alone', async () => {
  const { idleResidents, notify, recoverRun, ended } = scene();
  idleResidents.set(RUN, {});
  notify();
  idleResidents.set(RUN, {});
  await recoverRun({ status: 'running' });
  expect(ended).toEqual([]);
});

test('a run that waits with its process here is canceled if somebody wants that', async () => {
  const { idleResidents, notify, recoverRun, ended, canceled } = scene();
  idleResidents.set(RUN, {});
  notify();
  await recoverRun({ status: 'waiting_user', cancel_requested: { at: 1, actor: null } });
  expect([canceled, ended]).toEqual([[RUN], []]);
});

test('a process that was released is not released again when the run continues here', async () => {
  const { work, released, gate, play, timers } = scene();
  work.release(RUN);
  await soon();
  play();
  gate.release.open();
  await soon();
  timers.advance(500);
  await soon();
  expect(released).toEqual([RUN]);
});

// Starts work for a run that finishes when its gate opens, and logs both.
function works() {
  const { exclusively } = scene().work.recovery;
  const log: string[] = [];
  const start = (runId: string, name: string, error?: Error) => {
    const gate = new Gate();
    const over = exclusively(runId, async () => {
      log.push(`${name} starts`);
      await gate.opened;
      log.push(`${name} ends`);
      if (error) throw error;
      return name;
    });
    return { over, gate };
  };
  return { start, log };
}

describe('work that ends an orphan', () => {
  test('for the same run starts after the work before it has finished', async () => {
    const { start, log } = works();
    const [first, second] = [start(RUN, 'first'), start(RUN, 'second')];
    second.gate.open();
    await soon();
    expect(log).toEqual(['first starts']);
    first.gate.open();
    expect(await Promise.all([first.over, second.over])).toEqual(['first', 'second']);
    expect(log).toEqual(['first starts', 'first ends', 'second starts', 'second ends']);
  });

  test('for the same run starts after the work before it has thrown, and only that caller gets the error', async () => {
    const { start, log } = works();
    const [first, second] = [start(RUN, 'first', new Error('the log is damaged')), start(RUN, 'second')];
    second.gate.open();
    await soon();
    expect(log).toEqual(['first starts']);
    first.gate.open();
    await expect(first.over).rejects.toThrow('the log is damaged');
    expect(await second.over).toBe('second');
    expect(log).toEqual(['first starts', 'first ends', 'second starts', 'second ends']);
  });

  test('for the same run waits for the work that was queued before it, also after the first has finished', async () => {
    const { start, log } = works();
    const [first, second] = [start(RUN, 'first'), start(RUN, 'second')];
    first.gate.open();
    await first.over;
    const third = start(RUN, 'third');
    third.gate.open();
    await soon();
    expect(log).toEqual(['first starts', 'first ends', 'second starts']);
    second.gate.open();
    await third.over;
    expect(log.slice(3)).toEqual(['second ends', 'third starts', 'third ends']);
  });

  test('for another run does not wait', async () => {
    const { start, log } = works();
    const [first, other] = [start(RUN, 'first'), start('run_2', 'other')];
    other.gate.open();
    expect(await other.over).toBe('other');
    expect(log).toEqual(['first starts', 'other starts', 'other ends']);
    first.gate.open();
    await first.over;
  });
});
