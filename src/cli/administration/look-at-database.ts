// Checks the database of PARLEY_DATABASE_URL for parley doctor: whether it can be reached, its version, its hosts, and
// how many questions wait. Never shows a password, neither of the database nor of the URL of a host.
import { toTimestamp } from '../../kernel/clock.js';
import type { HostRecord } from '../../store/postgres/hosts/host-lease.js';
import { checkAudit } from './check-audit.js';
import type { Finding } from './doctor.js';
import { findDamage, type DamageOptions } from './find-damage.js';

// There may be hundreds; the first ones are enough.
const SHOWN = 10;

export async function lookAtDatabase(url: string, now: number, look: DamageOptions): Promise<Finding[]> {
  try {
    const { openPostgres } = await import('../../store/postgres/connection/open-postgres.js');
    const { listLiveHosts } = await import('../../store/postgres/hosts/host-lease.js');
    const { listAudit, readAuditHead } = await import('../../store/postgres/access/audit.js');
    const store = await openPostgres(url, { host: null, connections: 1 });
    try {
      const { database } = store;
      const [server] = await database.read<{ version: string; schema: string }>({
        name: 'doctor',
        text: `SELECT current_setting('server_version') AS version, value AS schema FROM parley.meta
          WHERE key = 'version'`,
        values: [],
      });
      const { pending, overdue } = await store.countPending(now);
      const hosts = await listLiveHosts(database);
      const text =
        `${database.place.name} (PostgreSQL ${server?.version}, tables of version ${server?.schema}), ` +
        `${pending} waiting for you${overdue > 0 ? `, ${overdue} of them overdue` : ''}`;
      const audit = await checkAudit({
        listAudit: (after, limit) => listAudit(database, after, limit),
        auditHead: () => readAuditHead(database),
      });
      return [
        { name: 'database', level: 'ok', text },
        ...(await findDamage(store, look)),
        ...tellHosts(hosts),
        ...tellDifferences(hosts),
        ...audit,
      ];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [{ name: 'database', level: 'missing', text: (error as Error).message }];
  }
}

function tellHosts(hosts: readonly HostRecord[]): Finding[] {
  if (hosts.length === 0) return [{ name: 'hosts', level: 'note', text: 'none is alive: parley serve starts one' }];
  const findings = hosts.slice(0, SHOWN).map(({ name, started_at: at, url }): Finding => ({
    name: 'host',
    level: 'ok',
    text: `${name} since ${toTimestamp(at)}${url === null ? '' : `, ${withoutLogin(url)}`}`,
  }));
  return hosts.length > SHOWN
    ? [...findings, { name: 'hosts', level: 'ok', text: `and ${hosts.length - SHOWN} more` }]
    : findings;
}

// Properties that all hosts should share: the key that a host reports, its name for people, and the fix if they differ.
const COMMON: readonly (readonly [key: string, what: string, advice: string])[] = [
  ['files', 'cluster.files', 'set the same in config.json of each'],
  ['lease_sec', 'cluster.lease_sec', 'set the same in config.json of each'],
  ['version', 'their version of Parley', 'update them to the same'],
];

function tellDifferences(hosts: readonly HostRecord[]): Finding[] {
  return COMMON.flatMap(([key, what, advice]): Finding[] => {
    const namesBy = new Map<string, Set<string>>();
    for (const { name, info } of hosts)
      if (info[key] !== undefined)
        namesBy.set(String(info[key]), (namesBy.get(String(info[key])) ?? new Set()).add(name));
    if (namesBy.size < 2) return [];
    return [
      {
        name: 'hosts',
        level: 'note',
        text:
          `the running hosts differ in ${what}: ` +
          `${[...namesBy].map(([value, names]) => `${value} (${listSome([...names])})`).join(', ')}; ${advice}`,
      },
    ];
  });
}

function listSome(names: readonly string[]): string {
  return names.length > SHOWN
    ? `${names.slice(0, SHOWN).join(', ')} and ${names.length - SHOWN} more`
    : names.join(', ');
}

function withoutLogin(address: string): string {
  if (!URL.canParse(address)) return 'an address that cannot be read';
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
