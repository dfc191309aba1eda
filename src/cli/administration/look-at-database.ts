// Checks the database of PARLEY_DATABASE_URL for parley doctor: whether it can be reached, its version, its hosts, and
// how many questions wait. Never shows a password, neither of the database nor of the URL of a host.
import { toTimestamp } from '../../kernel/clock.js';
import type { HostRecord } from '../../store/postgres/hosts/host-lease.js';
import { checkAudit } from './check-audit.js';
import { sayError, texts } from '../language/language.js';
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
      const { doctor: t } = texts();
      const facts = [
        t.database(database.place.name, String(server?.version), String(server?.schema)),
        t.waiting(pending),
        ...(overdue > 0 ? [t.overdue(overdue)] : []),
      ];
      const audit = await checkAudit({
        listAudit: (after, limit) => listAudit(database, after, limit),
        auditHead: () => readAuditHead(database),
      });
      return [
        { name: 'database', level: 'ok', text: facts.join(t.and) },
        ...(await findDamage(store, look)),
        ...tellHosts(hosts),
        ...tellDifferences(hosts),
        ...audit,
      ];
    } finally {
      await store.close();
    }
  } catch (error) {
    return [{ name: 'database', level: 'missing', text: sayError(error) }];
  }
}

function tellHosts(hosts: readonly HostRecord[]): Finding[] {
  const { doctor: t } = texts();
  if (hosts.length === 0) return [{ name: 'hosts', level: 'note', text: t.noHost }];
  const findings = hosts.slice(0, SHOWN).map(({ name, started_at: at, url }): Finding => ({
    name: 'host',
    level: 'ok',
    text: [t.host(name, toTimestamp(at)), ...(url === null ? [] : [withoutLogin(url)])].join(t.and),
  }));
  return hosts.length > SHOWN
    ? [...findings, { name: 'hosts', level: 'ok', text: t.andMore(hosts.length - SHOWN) }]
    : findings;
}

function tellDifferences(hosts: readonly HostRecord[]): Finding[] {
  const { doctor: t } = texts();
  // Properties that all hosts should share: the key that a host reports, its name for people, and the fix.
  const common: readonly (readonly [key: string, what: string, advice: string])[] = [
    ['files', 'cluster.files', t.setTheSame],
    ['lease_sec', 'cluster.lease_sec', t.setTheSame],
    ['version', t.theirVersion, t.updateThem],
  ];
  return common.flatMap(([key, what, advice]): Finding[] => {
    const namesBy = new Map<string, Set<string>>();
    for (const { name, info } of hosts)
      if (info[key] !== undefined)
        namesBy.set(String(info[key]), (namesBy.get(String(info[key])) ?? new Set()).add(name));
    if (namesBy.size < 2) return [];
    return [
      {
        name: 'hosts',
        level: 'note',
        text: t.hostsDiffer(
          what,
          [...namesBy].map(([value, names]) => t.valueOf(value, listSome([...names]))).join(t.and),
          advice,
        ),
      },
    ];
  });
}

function listSome(names: readonly string[]): string {
  const { doctor: t } = texts();
  return names.length > SHOWN
    ? t.namesAndMore(names.slice(0, SHOWN).join(t.names), names.length - SHOWN)
    : names.join(t.names);
}

function withoutLogin(address: string): string {
  if (!URL.canParse(address)) return texts().doctor.unreadableAddress;
  const { protocol, host, pathname } = new URL(address);
  return `${protocol}//${host}${pathname === '/' ? '' : pathname}`;
}
