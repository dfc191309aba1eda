// What parley doctor tells of the database that PARLEY_DATABASE_URL names: whether it is reached, what it is, who works on it, what waits.
// Never the password, nor that of an address that a host gave.
import { toTimestamp } from '../kernel/clock.js';
import type { HostRecord } from '../store/postgres/host-lease.js';
import type { Finding } from './doctor.js';

// There may be hundreds; the first ones tell enough.
const SHOWN = 10;

export async function lookAtDatabase(url: string, now: number): Promise<Finding[]> {
  try {
    const { openPostgres } = await import('../store/postgres/open-postgres.js');
    const { listLiveHosts } = await import('../store/postgres/host-lease.js');
    const store = await openPostgres(url, { host: null, connections: 1 });
    try {
      const { database } = store;
      const [server] = await database.read<{ version: string; schema: string }>({ name: 'doctor', text: `SELECT current_setting('server_version') AS version, value AS schema FROM parley.meta WHERE key = 'version'`, values: [] });
      const { pending, overdue } = await store.countPending(now);
      const hosts = await listLiveHosts(database);
      const text = `${database.place.name} (PostgreSQL ${server?.version}, tables of version ${server?.schema}), ${pending} waiting for an answer${overdue > 0 ? `, ${overdue} of them overdue` : ''}`;
      return [{ name: 'database', level: 'ok', text }, ...tellHosts(hosts)];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [{ name: 'database', level: 'missing', text: (error as Error).message }];
  }
}

function tellHosts(hosts: readonly HostRecord[]): Finding[] {
  if (hosts.length === 0) return [{ name: 'hosts', level: 'note', text: 'none is alive: parley serve starts one' }];
  const told = hosts.slice(0, SHOWN).map(({ name, started_at: at, url }): Finding => ({ name: 'host', level: 'ok', text: `${name} since ${toTimestamp(at)}${url === null ? '' : `, ${withoutLogin(url)}`}` }));
  return hosts.length > SHOWN ? [...told, { name: 'hosts', level: 'ok', text: `and ${hosts.length - SHOWN} more` }] : told;
}

function withoutLogin(address: string): string {
  if (!URL.canParse(address)) return 'an address that cannot be read';
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
