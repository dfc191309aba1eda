// Every method of a store, called as in everyday work, for the tests that look at the cost of each query.
import { expect } from 'vitest';
import type { RunFilter, RunRecord, Store } from '../../src/store/store.js';
import { ask, change, delivery, flush, newRun, T0, type RowEdit } from './conformance.js';

async function create(store: Store, number: number): Promise<RunRecord> {
  const outcome = await store.createRun(newRun(number, { handle: HANDLE, queue_limit: NO_LIMIT }));
  if (!outcome.created) throw new Error(outcome.reason);
  return outcome.run;
}

type Label = NonNullable<RunFilter['label']>;

const NO_LIMIT = 1e9;
const HANDLE = {
  engine: 'codex',
  handle_type: 'session_id',
  handle_value: 'x',
  cwd: '/work',
  home: '/home/x',
  created_at_attempt: 1,
} as const;

async function commit(store: Store, run: RunRecord, edit: RowEdit): Promise<RunRecord> {
  expect(await store.append(change(run, edit))).toMatchObject({ committed: true });
  return (await store.loadRun(run.run_id)) as RunRecord;
}

const subsets = <T extends object>(parts: readonly T[]): T[] =>
  Array.from({ length: 2 ** parts.length }, (_, bits) =>
    Object.assign({} as T, ...parts.filter((__, index) => (bits >> index) % 2 === 1)),
  ) as T[];

const runFilters = (label: Label): Omit<RunFilter, 'limit'>[] =>
  subsets<Omit<RunFilter, 'limit'>>([{ status: 'queued' }, { engine: 'codex' }, { label }, { before: 'run_9999' }]);
const pendingFilters = (label: Label): object[] =>
  subsets<object>([
    { engine: 'codex' },
    { label },
    { overdueAt: T0 },
    { after: { asked_at: T0, interaction_id: 'int_0' } },
  ]);
const TURN = {
  attempt_number: 1,
  parser: { profile: 'codex_ndjson', units: 3, parsed: 2, fallbacks: 1, hit_rate: 2 / 3, warnings: { ODD_LINE: 1 } },
  completion: { result: 'unknown', reason_code: 'NO_TURN_COMPLETED' },
} as const;
const ALL = { limit: 9, fromSeq: 1 };
const RESOLVED = {
  interaction_id: 'int_1',
  state: 'canceled',
  resolution: { at: T0, response: null, actor: null, idempotency_key: null, finish: false },
} as const;

// Each method of the store, so that a new one is missing here until its queries are checked.
export function everyCall(
  store: Store,
  label: Label = { key: 'team', value: 'a' },
): Readonly<Record<keyof Store, () => unknown>> {
  const [byRun, byQuestion] = [runFilters(label), pendingFilters(label)];
  return {
    isComplete: () => {},
    summaries: async () => {
      for (const filter of byRun) await store.summaries.listRuns({ ...filter, limit: 9 });
      for (const filter of byQuestion) await store.summaries.listPending({ ...filter, limit: 9 });
      await store.summaries.loadRun('run_0001');
      await store.summaries.loadInteraction('int_1');
      await store.summaries.loadPendingInteraction('run_0001');
    },
    createRun: () => create(store, 1),
    append: async () => {
      const run = await create(store, 2);
      const small = await commit(store, run, { journal: flush(3, 1, 3, T0 + 9) });
      const asked = await commit(store, small, {
        set: { status: 'waiting_user' },
        ask: ask('int_1', { decides: true }),
      });
      await commit(
        store,
        await commit(store, asked, { set: { status: 'queued' }, resolve: RESOLVED, handle: HANDLE }),
        {
          set: { status: 'failed', epoch: 2 },
          turn: TURN,
          deliveries: [delivery('dlv_1'), delivery('dlv_2')],
          create: newRun(3, { queue_limit: NO_LIMIT }),
          journal: flush(4, 1, 4, T0 + 99),
        },
      );
    },
    deleteRun: async () => {
      const spec = { ...newRun(4).spec, home: '/home/y', cwd: '/data/runs/run_0004/workspace' };
      const outcome = await store.createRun(newRun(4, { spec, queue_limit: NO_LIMIT }));
      await commit(store, (outcome as { run: RunRecord }).run, { set: { status: 'failed' }, turn: TURN });
      expect(await store.deleteRun('run_0004')).toBe('deleted');
    },
    onCommitted: () => {},
    follow: () => {},
    onMissed: () => {},
    loadRun: () => store.loadRun('run_0001'),
    salvageRun: () => store.salvageRun('run_0001'),
    findInHome: () => store.findInHome('/home/x', 'run_0001'),
    findAtWork: () => store.findAtWork('/work'),
    loadRequest: () => store.loadRequest('req_0001'),
    listRuns: async () => {
      for (const filter of byRun) await store.listRuns({ ...filter, limit: 9 });
    },
    listRunIds: async () => {
      for (const filter of byRun) await store.listRunIds({ ...filter, limit: 9 });
    },
    listEnded: async () => {
      await store.listEnded({ before: T0, limit: 9 });
      await store.listEnded({ before: T0, after: { run_id: 'run_0001', updated_at: T0 }, limit: 9 });
    },
    loadHandle: () => store.loadHandle('req_0001'),
    loadInteraction: () => store.loadInteraction('int_1'),
    loadInteractionByKey: () => store.loadInteractionByKey('run_0002', 'key'),
    loadPendingInteraction: () => store.loadPendingInteraction('run_0002'),
    loadLatestInteraction: () => store.loadLatestInteraction('run_0002'),
    listInteractions: () => store.listInteractions('run_0002'),
    listPending: async () => {
      for (const filter of byQuestion) await store.listPending({ ...filter, limit: 9 });
    },
    nextDecision: () => store.nextDecision(['int_9']),
    listQueued: () => store.listQueued(9),
    readJournal: () => store.readJournal('run_0002', 'rasp', ALL),
    readLines: () => store.readLines('run_0002', 'rasp', 1, 100),
    listSegments: () => store.listSegments('run_0002', 'rasp'),
    readSegments: () => store.readSegments('run_0002', 'rasp', 1, 100),
    recomputeDigest: () => store.recomputeDigest('run_0002'),
    nextDelivery: () => store.nextDelivery(T0 + 9000, ['other']),
    nextDeliveryAt: () => store.nextDeliveryAt(['other']),
    finishDelivery: async () => {
      await store.finishDelivery('dlv_1', { type: 'retry', at: T0, error: 'x' });
      await store.finishDelivery('dlv_1', { type: 'given_up', at: T0, error: 'x' });
      await store.finishDelivery('dlv_2', { type: 'delivered' });
    },
    countDeliveries: () => store.countDeliveries(),
    countRuns: () => store.countRuns(),
    countPending: () => store.countPending(T0),
    sumTurns: async () => [await store.sumTurns(), await store.sumTurns('run_0002')],
    findWrongTotals: () => store.findWrongTotals(),
    recountTotals: () => store.recountTotals(),
    markStarting: () => store.markStarting('run_0001'),
    releaseStarts: async () => {
      await store.markStarting('run_0001');
      await store.releaseStarts();
    },
    countCrashes: async () => {
      await store.markStarting('run_0001');
      await store.countCrashes();
    },
    listByTail: () => store.listByTail(['n_0001']),
    listByPrefix: () => store.listByPrefix('run_', 9),
    checkUsable: () => store.checkUsable?.(),
    findGroupDamage: () => store.findGroupDamage?.(),
    // By the caller, at the end.
    close: () => {},
  };
}
