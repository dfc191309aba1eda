// The ports for a single host: it owns every run and has every file. Each unfinished run that exists when it starts is
// an orphan of the previous process.
import type { RunReader, RunQueue } from '../store/store.js';
import type { HostPorts, OrphanState } from './ownership.js';

const PAGE = 500;

export type SingleHostStore = Pick<RunReader & RunQueue, 'listRunIds' | 'listQueued'>;

export function singleHost(store: SingleHostStore): HostPorts {
  return {
    ownership: {
      hasPeers: false,
      pollMs: null,
      mayRun: () => true,
      onLost: () => {},
      peek: async () => (await store.listQueued(1)).length > 0,
      claim: async (limit, except) => {
        const excluded = new Set(except);
        const queued = await store.listQueued(limit + excluded.size);
        return queued.filter((runId) => !excluded.has(runId)).slice(0, limit);
      },
      listOrphans: (state) => listAll(store, state),
      takeOver: async (run) => run,
      isRunElsewhere: async () => false,
    },
    peers: {
      requestCancel: async () => {},
      listCancelRequests: async () => [],
      hold: async () => {},
      release: async () => {},
      isHeldElsewhere: async () => false,
      hasEngine: async () => false,
    },
    files: {
      layout: 'single',
      isHere: async () => true,
      whereIs: async () => null,
      listUnexported: async () => [],
      markExported: async () => {},
      listStranded: async () => [],
      listLeftovers: async () => [],
      forgetLeftover: async () => {},
    },
  };
}

// Reads all ids before the first run is changed, because recovery changes the list.
async function listAll(store: SingleHostStore, status: OrphanState): Promise<string[]> {
  const ids: string[] = [];
  for (
    let page = await store.listRunIds({ status, limit: PAGE });
    page.length > 0;
    page = await store.listRunIds({ status, limit: PAGE, before: page.at(-1) ?? '' })
  )
    ids.push(...page);
  return ids;
}
