// A server among the hosts that share a database, for a command beside them: the nearest one that answers. A host that is listed but
// does not answer is passed over, and so is anything else that answers at its address.
import type { Timers } from '../process/timers.js';
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

// `own`: the address of the server that holds this data directory, which may be reached from this machine only.
export async function findClusterServer(database: string, path: string, own: string | null, io: Io): Promise<ClusterServer | null> {
  const { hosts, token } = await lookForHosts(database);
  const near = { name: hostNameOf(io), site: readSite(path) };
  const urls = new Set([...(own === null ? [] : [own]), ...orderHosts(hosts, near).flatMap(({ url }) => url ?? [])]);
  const url = await firstToAnswer([...urls].slice(0, ASKED), new Set(hosts.map(({ host_id: id }) => id)), io.timers);
  return url === null ? null : { url, token };
}

// Those of this machine come first, and of equal ones those that have the files of this data directory.
export function orderHosts<T extends Pick<HostRecord, 'name' | 'site'>>(hosts: readonly T[], near: { readonly name: string; readonly site: string | null }): T[] {
  const distance = ({ name, site }: T): number => (name === near.name ? 0 : 2) + (site !== null && site === near.site ? 0 : 1);
  return hosts.toSorted((one, other) => distance(one) - distance(other));
}

async function lookForHosts(url: string): Promise<{ hosts: HostRecord[]; token: string }> {
  const { Database } = await import('../store/postgres/database.js');
  const { deriveToken, loadSecret } = await import('../store/postgres/derive-token.js');
  const { listLiveHosts } = await import('../store/postgres/host-lease.js');
  const { checkMigrated } = await import('../store/postgres/migrate.js');
  const database = new Database(url, { connections: 1 });
  try {
    await checkMigrated(database);
    return { hosts: await listLiveHosts(database), token: deriveToken(await loadSecret(database), 'operator') };
  } finally {
    await database.close();
  }
}

// All are asked at once; the first of them in this order that answers as one of these hosts is taken.
export async function firstToAnswer(urls: readonly string[], hostIds: ReadonlySet<string>, timers: Timers): Promise<string | null> {
  const enough = new AbortController();
  // A timer of ours: a signal that is made of others may be collected with its timeout before that is over.
  const stop = timers.set(ANSWER_MS, () => enough.abort());
  const asked = urls.map((url) => askHost(url, enough.signal));
  try {
    for (const [index, answer] of asked.entries()) {
      const id = await answer;
      if (id !== null && hostIds.has(id)) return urls[index] ?? null;
    }
    return null;
  } finally {
    stop();
    enough.abort();
  }
}

// Which host it is; it is asked before any token is sent there. Null: no host that could do something now.
async function askHost(url: string, signal: AbortSignal): Promise<string | null> {
  try {
    const answer = await fetch(`${url.replace(/\/+$/, '')}/readyz`, { signal, redirect: 'error' });
    const { host_id: id } = (await answer.json()) as { host_id?: unknown };
    return answer.ok && typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}
