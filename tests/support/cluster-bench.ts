// An orchestrator in this process that is a host of a PostgreSQL database, with stand-in engines; its calls of the
// store and of the cluster can be altered.
import { PostgresDispatch } from '../../src/dispatch/postgres/postgres-dispatch.js';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { joinCluster, type Membership } from '../../src/ownership/postgres/join-cluster.js';
import { SharedClock } from '../../src/ownership/postgres/shared-clock.js';
import { systemClock } from '../../src/kernel/clock.js';
import { createIds } from '../../src/kernel/ids.js';
import type { OrchestratorDeps } from '../../src/journal/deps.js';
import { Orchestrator } from '../../src/orchestrator/orchestrator.js';
import { verifyRun } from '../../src/audit/verify-run.js';
import { systemTimers } from '../../src/process/timers.js';
import { siteAt } from '../../src/store/postgres/hosts/site.js';
import type { PostgresStore } from '../../src/store/postgres/postgres-store.js';
import type { RunRecord, Store } from '../../src/store/store.js';
import { createRoot, standInRuntime } from './orchestrated.js';
import { withStores, type Stores } from './postgres-stores.js';

export interface ClusterBench {
  readonly stores: Stores;
  // The real one.
  readonly store: PostgresStore;
  readonly membership: Membership;
  readonly orchestrator: Orchestrator;
  readonly failures: unknown[];
  // The checks of a run that cannot pass here.
  doubts(runId: string): Promise<string[]>;
}

export interface Alterations {
  readonly store?: (store: Store) => Store;
  readonly cluster?: (cluster: Membership) => Partial<Membership>;
}

// Two seconds: short for a test, long enough for a busy machine.
const LEASE_MS = 2000;

export async function openClusterBench(alter: Alterations = {}): Promise<ClusterBench> {
  const stores = await withStores();
  const root = createRoot();
  const dataDir = join(root, 'data');
  mkdirSync(dataDir);
  const site = siteAt(dataDir, 'host');
  const store = await stores.store({ site });
  const failures: unknown[] = [];
  const onFailure = (error: unknown): void => void failures.push(error);
  const membership = await joinCluster(
    {
      url: stores.url,
      store,
      clock: new SharedClock(systemClock, () => performance.now()),
      timers: systemTimers,
      monotonicMs: () => performance.now(),
      onFailure,
    },
    { name: 'a', url: null, site, leaseMs: LEASE_MS, goneMs: 60_000 },
  );
  const cluster = new Proxy(membership, {
    get: (target, name: keyof Membership) =>
      (alter.cluster?.(membership) as Partial<Membership> | undefined)?.[name] ?? target[name],
  });
  const deps: OrchestratorDeps = {
    store: alter.store?.(store) ?? store,
    clock: systemClock,
    ids: createIds(systemClock),
    timers: systemTimers,
    dataDir,
    queueLimit: () => 1000,
    runtime: standInRuntime(root),
    ownership: cluster,
    peers: cluster,
    files: cluster,
    createDispatch: (handlers, slots) =>
      new PostgresDispatch({ store, ownership: cluster, clock: systemClock, timers: systemTimers }, handlers, slots),
  };
  const orchestrator = await Orchestrator.open(deps, {
    slots: 4,
    recovery: { queued: 'requeue' },
    onFailure: (_run, error) => onFailure(error),
  });
  onTestFinished(async () => {
    await orchestrator.close();
    await membership.leave();
  });
  return {
    stores,
    store,
    membership,
    orchestrator,
    failures,
    doubts: async (runId) =>
      (await verifyRun(store, dataDir, (await store.loadRun(runId)) as RunRecord))
        .filter(({ ok }) => !ok)
        .map(({ name, finding }) => `${name}: ${finding}`),
  };
}
