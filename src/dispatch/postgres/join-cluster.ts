// This host among those that share a PostgreSQL database: its lease, what it may begin, and what others have left.
import type { JsonObject } from '../../kernel/json.js';
import type { Timers } from '../../process/timers.js';
import {
  holdProcess,
  isHeldElsewhere,
  isPlayed,
  letProcessGo,
  listOwned,
  listWished,
  takeOver,
} from '../../store/postgres/hosts/claims.js';
import { Database } from '../../store/postgres/connection/database.js';
import { loadDatabaseId } from '../../store/postgres/connection/database-id.js';
import { forgetDeadHost, listDeadHosts, listLiveHosts, readClock } from '../../store/postgres/hosts/host-lease.js';
import type { AuditTrace } from '../../store/audit.js';
import {
  listKnownHashes,
  registerOperator,
  type KnownHashes,
  type Registration,
} from '../../store/postgres/access/operator-tokens.js';
import type { PostgresStore } from '../../store/postgres/postgres-store.js';
import {
  forgetLeftover,
  listLeftovers,
  listStranded,
  listUnexported,
  markExported,
  siteOf,
} from '../../store/postgres/hosts/run-files.js';
import type { Site } from '../../store/postgres/hosts/site.js';
import { listTokenRows, type TokenRow } from '../../store/postgres/access/token-rows.js';
import type { Cluster } from '../cluster.js';
import { admitHost } from './admit-host.js';
import { makeHostIdentity } from './host-identity.js';
import { LeaseKeeper } from './lease-keeper.js';
import type { SharedClock } from './shared-clock.js';
import { PostgresDispatch } from './postgres-dispatch.js';

export interface JoinOptions {
  readonly name: string;
  // Where other hosts reach it.
  readonly url: string | null;
  readonly site: Site;
  readonly leaseMs: number;
  // A site that was gone for longer will not be waited for.
  readonly goneMs: number;
  // For whoever looks at the hosts.
  readonly info?: JsonObject;
}

export interface JoinDeps {
  // Of the database.
  readonly url: string;
  readonly store: PostgresStore;
  // Learns from the database what time it is.
  readonly clock: SharedClock;
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  readonly onFailure: (error: unknown) => void;
}

export interface Membership extends Cluster {
  readonly hostId: string;
  readonly isHeld: boolean;
  // The same for all hosts, and no secret.
  readonly databaseId: string;
  // Lets this host read files of runs from other hosts.
  readonly hostToken: string;
  // A signature that other hosts and commands verify with the public key in this host's row.
  prove(challenge: string): string;
  // Named tokens, which all hosts know.
  listTokens(): Promise<TokenRow[]>;
  // The tokens of operators and of live hosts.
  listKnownHashes(): Promise<KnownHashes>;
  registerOperator(registration: Registration, trace: AuditTrace): Promise<void>;
  // Where other hosts reach this one.
  setUrl(url: string): Promise<void>;
  // When nothing of this host is at work any more.
  leave(): Promise<void>;
}

// Rows of dead hosts are kept so long: they tell since when a site is gone.
const REMEMBERED_MS = 7 * 24 * 3600 * 1000;

export async function joinCluster(
  deps: JoinDeps,
  { name, url, site, leaseMs, goneMs, info = {} }: JoinOptions,
): Promise<Membership> {
  const { store } = deps;
  const { database } = store;
  await admitHost(database, deps.timers, { name, ...site });
  const databaseId = await loadDatabaseId(database);
  const { token, tokenSha256, publicKey, prove } = makeHostIdentity();
  const learn = () => deps.clock.learn(() => readClock(database));
  await learn();
  // Of its own: whatever the others wait for, the lease is renewed.
  const connection = new Database(deps.url, { connections: 1, answerMs: leaseMs / 3 });
  const keeper = await LeaseKeeper.open(
    { ...deps, connection, onRenewed: () => void learn().catch(deps.onFailure) },
    { name, url, ...site, ttlMs: leaseMs, info, token_sha256: tokenSha256, public_key: publicKey },
  ).catch(async (error: unknown) => {
    await connection.close();
    throw error;
  });
  return {
    get hostId() {
      return keeper.hostId;
    },
    get isHeld() {
      return keeper.isHeld;
    },
    files: site.site === null ? 'own' : 'local',
    reconcileMs: Math.max(500, leaseMs / 3),
    createDispatch: (handlers, slots) => new PostgresDispatch(deps, handlers, slots),
    onLost: (listener) => keeper.onLost(listener),
    listAbandoned: (limit) => store.listOwnedByDead(limit),
    listWished: (limit) => listWished(database, limit),
    listOwned: (limit) => listOwned(database, keeper.hostId, limit),
    mayPlay: () => keeper.mayPlay,
    takeOver: (run) => takeOver(database, keeper.hostId, run),
    isPlayed: (runId) => isPlayed(database, runId),
    hasFiles: async (runId) => site.site === null || [null, site.site].includes(await siteOf(database, runId)),
    whereFiles: async (runId) => {
      const where = site.site === null ? null : await siteOf(database, runId);
      const found =
        where === null
          ? undefined
          : (await listLiveHosts(database)).find((host) => host.site === where && host.url !== null);
      return found?.url ? { host_id: found.host_id, url: found.url, public_key: found.public_key } : null;
    },
    hasEngine: async (engine) =>
      (await listLiveHosts(database)).some(
        ({ host_id: id, info }) =>
          id !== keeper.hostId &&
          info.serves === true &&
          (!Array.isArray(info.engines) || info.engines.includes(engine)),
      ),
    isHeldElsewhere: (runId) => isHeldElsewhere(database, keeper.hostId, runId),
    hold: (runId) => holdProcess(database, keeper.hostId, runId),
    letGo: (runId) => letProcessGo(database, keeper.hostId, runId),
    listUnexported: (limit) => listUnexported(database, site, limit),
    markExported: (runId, seq) => markExported(database, runId, seq),
    // Nobody counts as gone before this one has been there so long: all of them may have been away, and come back one
    // after the other.
    listStranded: async (limit) => (keeper.heldMs < goneMs ? [] : listStranded(database, goneMs, limit)),
    listLeftovers: (except, limit) => listLeftovers(database, site, except, limit),
    forgetLeftover: (runId) => forgetLeftover(database, runId),
    databaseId,
    hostToken: token,
    prove: (challenge) => prove(challenge, keeper.hostId),
    listTokens: () => listTokenRows(database),
    listKnownHashes: () => listKnownHashes(database),
    registerOperator: (registration, trace) => registerOperator(database, registration, trace),
    setUrl: (at) => keeper.setUrl(at),
    leave: async () => {
      await keeper.close();
      await connection.close();
      await forgetOld(deps).catch(deps.onFailure);
    },
  };
}

async function forgetOld({ store: { database }, clock }: JoinDeps): Promise<void> {
  for (const { host_id: id, lease_until: until } of await listDeadHosts(database))
    if (until < clock.now() - REMEMBERED_MS) await forgetDeadHost(database, id);
}
