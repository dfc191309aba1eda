// A server among the hosts that share a database, for a command beside them: the nearest one that answers. A host that is listed but
// does not answer is passed over, and so is anything else that answers at its address.
import type { Timers } from '../process/timers.js';
import { answersAs } from '../service/host-proof.js';
import type { HostRecord } from '../store/postgres/host-lease.js';
import { readSite } from '../store/postgres/site.js';
import type { Io } from './io.js';
import { hostNameOf } from './open-data.js';

// One that is well answers at once, on a busy machine soon; one that died is listed until its lease is over.
const ANSWER_MS = 3000;
// There may be hundreds; where none of these answers, others hardly will.
const ASKED = 10;

export interface ClusterServer {
  readonly url: string;
  // The operator's, unless the server was started with another.
  readonly token: string;
}

// An address, and the hosts that it may be the address of: one that was killed and started again is listed twice for a while.
export interface Candidate {
  readonly url: string;
  readonly hostIds: ReadonlySet<string>;
}

// `own`: the address of the server that holds this data directory, which may be reached from this machine only.
export async function findClusterServer(database: string, path: string, own: string | null, io: Io): Promise<ClusterServer | null> {
  const { hosts, token, proofKey } = await lookForHosts(database);
  const near = { name: hostNameOf(io), site: readSite(path) };
  const url = await firstToAnswer(listCandidates(hosts, near, own).slice(0, ASKED), proofKey, io.timers);
  return url === null ? null : { url, token };
}

export function listCandidates(hosts: readonly Pick<HostRecord, 'host_id' | 'name' | 'site' | 'url'>[], near: { readonly name: string; readonly site: string | null }, own: string | null): Candidate[] {
  const found = new Map<string, Set<string>>();
  const add = (url: string, id: string): unknown => found.get(url)?.add(id) ?? found.set(url, new Set([id]));
  // The hosts know the server of a directory by its site; they may have no address of it, or another.
  if (own !== null) for (const { host_id: id, site } of hosts) if (site !== null && site === near.site) add(own, id);
  for (const { host_id: id, url } of orderHosts(hosts, near)) if (url !== null) add(url, id);
  return [...found].map(([url, hostIds]) => ({ url, hostIds }));
}

// Those of this machine come first, and of equal ones those that have the files of this data directory.
export function orderHosts<T extends Pick<HostRecord, 'name' | 'site'>>(hosts: readonly T[], near: { readonly name: string; readonly site: string | null }): T[] {
  const distance = ({ name, site }: T): number => (name === near.name ? 0 : 2) + (site !== null && site === near.site ? 0 : 1);
  return hosts.toSorted((one, other) => distance(one) - distance(other));
}

async function lookForHosts(url: string): Promise<{ hosts: HostRecord[]; token: string; proofKey: string }> {
  const { Database } = await import('../store/postgres/database.js');
  const { deriveToken, loadSecret } = await import('../store/postgres/derive-token.js');
  const { listLiveHosts } = await import('../store/postgres/host-lease.js');
  const { loadOperatorToken } = await import('../store/postgres/token-rows.js');
  const { checkMigrated } = await import('../store/postgres/migrate.js');
  const database = new Database(url, { connections: 1 });
  try {
    await checkMigrated(database);
    const secret = await loadSecret(database);
    const token = await loadOperatorToken(database);
    return { hosts: await listLiveHosts(database), token, proofKey: deriveToken(secret, 'proof') };
  } finally {
    await database.close();
  }
}

// All are asked at once; the first of them in this order that proves to be a host of this address is taken. Any program may listen where a host
// that died is still listed, so no token is sent before.
export async function firstToAnswer(candidates: readonly Candidate[], proofKey: string, timers: Timers): Promise<string | null> {
  const enough = new AbortController();
  // A timer of ours: a signal that is made of others may be collected with its timeout before that is over.
  const stop = timers.set(ANSWER_MS, () => enough.abort());
  const asked = candidates.map(({ url, hostIds }) => answersAs(hostIds, url, proofKey, enough.signal));
  try {
    for (const [index, answer] of asked.entries()) if (await answer) return candidates[index]?.url ?? null;
    return null;
  } finally {
    stop();
    enough.abort();
  }
}
