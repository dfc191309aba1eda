// A store in which some calls do something else: fail, wait, or count. All other calls are the real ones.
import type { RunAppend, Store } from '../../src/store/store.js';
import type { SummaryReader } from '../../src/store/summary-reader.js';

export function alterStore(store: Store, changes: Partial<Store>): Store {
  return new Proxy(store, {
    get: (target, name: keyof Store) => {
      const own = target[name];
      return changes[name] ?? (typeof own === 'function' ? (own as (...args: unknown[]) => unknown).bind(target) : own);
    },
  });
}

// The same for its summaries.
export function alterSummaries({ summaries }: Store, changes: Partial<SummaryReader>): Pick<Store, 'summaries'> {
  return {
    summaries: {
      listRuns: (filter) => summaries.listRuns(filter),
      loadRun: (runId) => summaries.loadRun(runId),
      loadRuns: (runIds) => summaries.loadRuns(runIds),
      listPending: (filter) => summaries.listPending(filter),
      loadInteraction: (id) => summaries.loadInteraction(id),
      loadPendingInteraction: (runId) => summaries.loadPendingInteraction(runId),
      ...changes,
    },
  };
}

// The first append of this kind fails, after the test's own step; the others are stored.
export function failOnce(
  store: Store,
  isMeant: (append: RunAppend) => boolean,
  before: () => Promise<void> = async () => {},
): Store {
  let failed = false;
  return alterStore(store, {
    append: async (append) => {
      if (failed || !isMeant(append)) return store.append(append);
      failed = true;
      await before();
      throw new Error('the disk is full');
    },
  });
}

// The appends of a running turn.
export const isFlush = ({ before, after }: RunAppend): boolean => after.status === before.status;
