// Joins the hosts that share a PostgreSQL database: keeps the lease of this host and implements the ownership ports on
// the database.
import type { JsonObject } from '../../kernel/json.js';
import type { Timers } from '../../process/timers.js';
import {
  holdProcess,
  isHeldElsewhere,
  isRunElsewhere,
  listCancelRequests,
  listOwned,
  releaseProcess,
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
import type { Ownership, Peers, RunFiles } from '../ownership.js';
import { admitHost } from './admit-host.js';
import { makeHostIdentity } from './host-identity.js';
import { LeaseKeeper } from './lease-keeper.js';
import type { SharedClock } from './shared-clock.js';

export interface JoinOptions {
  readonly name: string;
  // The URL at which other hosts reach this host.
  readonly url: string | null;
  readonly site: Site;
  readonly leaseMs: number;
  // Runs on a site that has been offline for longer than this fail.
  readonly goneMs: number;
  // Shown in lists of hosts.
  readonly info?: JsonObject;
}

export interface JoinDeps {
  // The URL of the database.
  readonly url: string;
  readonly store: PostgresStore;
  // Follows the clock of the database.
  readonly clock: SharedClock;
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  readonly onFailure: (error: unknown) => void;
}

export interface Membership extends Ownership, Peers, RunFiles {
  readonly hostId: string;
  readonly isHeld: boolean;
  // The same for all hosts, and not a secret.
  readonly databaseId: string;
  // Lets this host read files of runs from other hosts.
  readonly hostToken: string;
  // A signature that other hosts and commands verify with the public key in this host's row.
  prove(challenge: string): string;
  // Named tokens, which all hosts accept.
  listTokens(): Promise<TokenRow[]>;
  // The tokens of operators and of live hosts.
  listKnownHashes(): Promise<KnownHashes>;
  registerOperator(registration: Registration, trace: AuditTrace): Promise<void>;
  // Sets the URL at which other hosts reach this host.
  setUrl(url: string): Promise<void>;
  // Gives up the lease. Call it only after all work of this host has ended.
  leave(): Promise<void>;
}

// How many orphans one search returns; the next search returns the rest.
const MOST_ORPHANS = 100;
// Rows of dead hosts are kept this long, because they record since when a site is offline.
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
  // Uses its own connection, so a slow query never delays a lease renewal.
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
    hasPeers: true,
    layout: site.site === null ? 'shared' : 'local',
    pollMs: Math.max(500, leaseMs / 3),
    onLost: (listener) => keeper.onLost(listener),
    // Queued and waiting runs need no recovery: any host continues them.
    listOrphans: async (state) =>
      state === 'running'
        ? [...(await store.listOwnedByDead(MOST_ORPHANS)), ...(await listOwned(database, keeper.hostId, MOST_ORPHANS))]
        : [],
    listCancelRequests: (limit) => listCancelRequests(database, limit),
    requestCancel: (runId, request) => store.requestCancel(runId, request),
    mayRun: () => keeper.mayRun,
    peek: () => store.peekQueued(),
    claim: (limit, except) => store.claimQueued(limit, except),
    takeOver: (run) => takeOver(database, keeper.hostId, run),
    isRunElsewhere: (runId) => isRunElsewhere(database, runId),
    isHere: async (runId) => site.site === null || [null, site.site].includes(await siteOf(database, runId)),
    whereIs: async (runId) => {
      const where = site.site === null ? null : await siteOf(database, runId);
      const host =
        where === null
          ? undefined
          : (await listLiveHosts(database)).find(({ site: other, url: at }) => other === where && at !== null);
      return host?.url ? { host_id: host.host_id, url: host.url, public_key: host.public_key } : null;
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
    release: (runId) => releaseProcess(database, keeper.hostId, runId),
    listUnexported: (limit) => listUnexported(database, site, limit),
    markExported: (runId, seq) => markExported(database, runId, seq),
    // No host counts as offline before this one has run for that long: all hosts may have been stopped and may be
    // starting one after the other.
    listStranded: async (limit) => (keeper.heldMs < goneMs ? [] : listStranded(database, goneMs, limit)),
    listLeftovers: (except, limit) => listLeftovers(database, site, { except, limit }),
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
