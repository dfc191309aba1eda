// A server among the hosts that share a database, for a command beside them: the nearest one that answers. A host that
// is listed but does not answer is passed over, and so is anything else that answers at its address.
import type { Timers } from '../../process/timers.js';
import { answersAs, type HostKeys } from '../../service/access/host-proof.js';
import type { HostRecord } from '../../store/postgres/hosts/host-lease.js';
import { readSite } from '../../store/postgres/hosts/site.js';
import type { Io } from '../io.js';
import { hostNameOf } from '../open-data.js';
import { registeredToken } from './own-operator.js';

// One that is well answers at once, on a busy machine soon; one that died is listed until its lease is over.
const ANSWER_MS = 3000;
// There may be hundreds; where none of these answers, others hardly will.
const ASKED = 10;

export interface ClusterServer {
  readonly url: string;
  readonly token: string;
}

// What a command knows before it asks the database.
export interface Caller {
  // Its data directory.
  readonly path: string;
  // The address of the server that holds this directory, which may be reachable from this machine only.
  readonly own: string | null;
  // PARLEY_TOKEN; null: the token of the directory is used, and registered in the database.
  readonly token: string | null;
}

// An address, and the hosts that it may be the address of: one that was killed and started again is listed twice for a
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
    const candidates = listCandidates(await listLiveHosts(database), near, own).slice(0, ASKED);
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
  const found = new Map<string, Map<string, string>>();
  const add = (url: string, id: string, key: string): unknown =>
    found.get(url)?.set(id, key) ?? found.set(url, new Map([[id, key]]));
  // The hosts know the server of a directory by its site; they may have no address of it, or another.
  if (own !== null)
    for (const { host_id: id, site, public_key: key } of hosts)
      if (site !== null && site === near.site) add(own, id, key);
  for (const { host_id: id, url, public_key: key } of orderHosts(hosts, near)) if (url !== null) add(url, id, key);
  return [...found].map(([url, keys]) => ({ url, keys }));
}

// Those of this machine come first, and of equal ones those that have the files of this data directory.
export function orderHosts<T extends Pick<HostRecord, 'name' | 'site'>>(
  hosts: readonly T[],
  near: { readonly name: string; readonly site: string | null },
): T[] {
  const distance = ({ name, site }: T): number =>
    (name === near.name ? 0 : 2) + (site !== null && site === near.site ? 0 : 1);
  return hosts.toSorted((one, other) => distance(one) - distance(other));
}

// All are asked at once; the first of them in this order that proves to be a host of this address is taken. Any program
// may listen where a host that died is still listed, so no token is sent before.
export async function firstToAnswer(candidates: readonly Candidate[], timers: Timers): Promise<string | null> {
  const enough = new AbortController();
  // A timer of ours: a signal that is made of others may be collected with its timeout before that is over.
  const stop = timers.set(ANSWER_MS, () => enough.abort());
  const asked = candidates.map(({ url, keys }) => answersAs(keys, url, enough.signal));
  try {
    for (const [index, answer] of asked.entries()) if (await answer) return candidates[index]?.url ?? null;
    return null;
  } finally {
    stop();
    enough.abort();
  }
}
