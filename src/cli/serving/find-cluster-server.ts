// Finds the nearest server among the hosts that share a database, for a command on one of their machines. Skips hosts
// that do not respond, and other programs that respond at the address of a host.
import type { Timers } from '../../process/timers.js';
import { answersAs, type HostKeys } from '../../service/access/host-proof.js';
import type { HostRecord } from '../../store/postgres/hosts/host-lease.js';
import { readSite } from '../../store/postgres/hosts/site.js';
import type { Io } from '../io.js';
import { hostNameOf } from '../open-data.js';
import { registeredToken } from './own-operator.js';

// A healthy host responds at once, on a busy machine a little later. A crashed host is listed until its lease expires.
const ANSWER_MS = 3000;
// There may be hundreds of hosts. If none of the first ones responds, the others hardly will.
const MAX_CANDIDATES = 10;

export interface ClusterServer {
  readonly url: string;
  readonly token: string;
}

// What a command knows before it queries the database.
export interface Caller {
  // The data directory of the command.
  readonly path: string;
  // The address of the server that holds this directory, which may be reachable from this machine only.
  readonly own: string | null;
  // PARLEY_TOKEN; null to use the token of the directory, which is then registered in the database.
  readonly token: string | null;
}

// An address with the keys of the hosts that may have it: a host that was killed and restarted is listed twice for a
// while.
export interface Candidate {
  readonly url: string;
  readonly keys: HostKeys;
}

export async function findClusterServer(
  databaseUrl: string,
  { path, own, token }: Caller,
  io: Io,
): Promise<ClusterServer | null> {
  const { Database } = await import('../../store/postgres/connection/database.js');
  const { listLiveHosts } = await import('../../store/postgres/hosts/host-lease.js');
  const { checkMigrated } = await import('../../store/postgres/connection/migrate.js');
  const database = new Database(databaseUrl, { connections: 1 });
  try {
    await checkMigrated(database);
    const near = { name: hostNameOf(io), site: readSite(path) };
    const candidates = listCandidates(await listLiveHosts(database), near, own).slice(0, MAX_CANDIDATES);
    const url = await firstToAnswer(candidates, io.timers);
    return url === null ? null : { url, token: token ?? (await registeredToken(database, path, io)) };
  } finally {
    await database.close();
  }
}

export function listCandidates(
  hosts: readonly Pick<HostRecord, 'host_id' | 'name' | 'site' | 'url' | 'public_key'>[],
  near: { readonly name: string; readonly site: string | null },
  own: string | null,
): Candidate[] {
  const servers = new Map<string, Map<string, string>>();
  const add = (url: string, id: string, key: string): unknown =>
    servers.get(url)?.set(id, key) ?? servers.set(url, new Map([[id, key]]));
  // The server of a directory is recognised by its site; the hosts may list another address for it, or none.
  if (own !== null)
    for (const { host_id: id, site, public_key: key } of hosts)
      if (site !== null && site === near.site) add(own, id, key);
  for (const { host_id: id, url, public_key: key } of orderHosts(hosts, near)) if (url !== null) add(url, id, key);
  return [...servers].map(([url, keys]) => ({ url, keys }));
}

// Hosts of this machine come first; among equals, those with the files of this data directory.
export function orderHosts<T extends Pick<HostRecord, 'name' | 'site'>>(
  hosts: readonly T[],
  near: { readonly name: string; readonly site: string | null },
): T[] {
  const distance = ({ name, site }: T): number =>
    (name === near.name ? 0 : 2) + (site !== null && site === near.site ? 0 : 1);
  return hosts.toSorted((one, other) => distance(one) - distance(other));
}

// Contacts all candidates at once and returns the first one, in this order, that proves to be a host with this address.
// Sends no token before that: any program may listen at the address of a crashed host that is still listed.
export async function firstToAnswer(candidates: readonly Candidate[], timers: Timers): Promise<string | null> {
  const enough = new AbortController();
  // Uses its own timer: AbortSignal.any may be garbage-collected together with a timeout that is still pending.
  const stop = timers.set(ANSWER_MS, () => enough.abort());
  const proofs = candidates.map(({ url, keys }) => answersAs(keys, url, enough.signal));
  try {
    for (const [index, answer] of proofs.entries()) if (await answer) return candidates[index]?.url ?? null;
    return null;
  } finally {
    stop();
    enough.abort();
  }
}
