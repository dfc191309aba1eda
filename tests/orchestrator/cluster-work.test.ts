// What a host does because there are others, with its store and the others played by hand: looks that come late.
import { expect, test } from 'vitest';
import type { Cluster } from '../../src/dispatch/cluster.js';
import { ClusterWork } from '../../src/orchestrator/cluster-work.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import type { JournalFiles } from '../../src/journal/journal-files.js';
import type { Residents } from '../../src/turn/residents.js';
import type { TurnControl } from '../../src/turn/turn-control.js';
import type { Committed, RunRecord } from '../../src/store/store.js';
import { Gate } from '../support/gate.js';
import { SimulatedTimers } from '../support/simulated-timers.js';

const RUN = 'run_1';
const nothing = (): void => {};
const soon = () => new Promise((resolve) => setImmediate(resolve));

function scene() {
  let hear: (told: Committed) => void = nothing;
  let answer: (run: Partial<RunRecord>) => void = nothing;
  const [ended, canceled, let_go]: [string[], string[], string[]] = [[], [], []];
  const gate = { letGo: new Gate() };
  const waiters = new Map<string, object>();
  const controls = new Map<string, { control: TurnControl; over: Promise<void> }>();
  const timers = new SimulatedTimers();
  const cluster = {
    onLost: () => {},
    letGo: async (runId: string) => {
      let_go.push(runId);
      await gate.letGo.opened;
      throw new Error('away');
    },
  } as unknown as Cluster;
  const store = {
    onCommitted: (listener: typeof hear) => {
      hear = listener;
      return () => {};
    },
    onMissed: () => () => {},
    loadRun: () => new Promise((resolve) => (answer = resolve as typeof answer)),
  } as unknown as OrchestratorDeps['store'];
  const residents = {
    has: (runId: string) => waiters.has(runId),
    kept: () => [...waiters.keys()],
    waiterOf: (runId: string) => waiters.get(runId) ?? null,
    end: async (runId: string) => void ended.push(runId),
  } as unknown as Residents;
  const work = new ClusterWork(
    { store, cluster, timers, dataDir: '/nowhere' } as unknown as OrchestratorDeps,
    controls,
    residents,
    {} as JournalFiles,
    async (runId) => void canceled.push(runId),
    () => {},
  );
  const play = (): void => void controls.set(RUN, { control: {} as TurnControl, over: Promise.resolve() });
  return {
    work,
    timers,
    waiters,
    controls,
    ended,
    canceled,
    let_go,
    gate,
    play,
    told: () => hear({ run_id: RUN, origin: 'elsewhere', ms: 0 }),
    found: async (run: Partial<RunRecord>) => {
      answer({ cancel_requested: null, ...run });
      await soon();
    },
  };
}

test('a process whose run went on elsewhere is ended', async () => {
  const { waiters, told, found, ended } = scene();
  waiters.set(RUN, {});
  told();
  await found({ status: 'succeeded' });
  expect(ended).toEqual([RUN]);
});

test('a process that began to wait while it was looked is left alone', async () => {
  const { waiters, controls, play, told, found, ended } = scene();
  play();
  told();
  // The turn is over since, and its process waits.
  waiters.set(RUN, {});
  controls.delete(RUN);
  await found({ status: 'running' });
  expect(ended).toEqual([]);
});

test('another process than the one that waited when it was looked is left alone', async () => {
  const { waiters, told, found, ended } = scene();
  waiters.set(RUN, {});
  told();
  waiters.set(RUN, {});
  await found({ status: 'running' });
  expect(ended).toEqual([]);
});

test('a run that waits with its process here is canceled if somebody wants that', async () => {
  const { waiters, told, found, ended, canceled } = scene();
  waiters.set(RUN, {});
  told();
  await found({ status: 'waiting_user', cancel_requested: { at: 1, actor: null } });
  expect([canceled, ended]).toEqual([[RUN], []]);
});

test('what was let go is not let go again when it goes on here', async () => {
  const { work, let_go, gate, play, timers } = scene();
  work.letGo(RUN);
  await soon();
  play();
  gate.letGo.open();
  await soon();
  timers.advance(500);
  await soon();
  expect(let_go).toEqual([RUN]);
});
