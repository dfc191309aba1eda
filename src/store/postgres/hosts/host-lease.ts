// Hosts that run turns, and the lease of each: renewed in time, or expired for good. All times are those of the
// database's clock, so the clocks of the hosts do not matter.
import type { JsonObject } from '../../../kernel/json.js';
import { readStoredJson } from '../../../kernel/stored-json.js';
import type { Database } from '../connection/database.js';
import { fromText, toText } from '../connection/text.js';

export interface NewHost {
  // Identifies this start of the process: a restarted host is a different one.
  readonly host_id: string;
  readonly name: string;
  // The address at which other hosts reach it.
  readonly url: string | null;
  // The disk with its files; null: all hosts share the same files.
  readonly site?: string | null;
  // Its data directory.
  readonly place?: string | null;
  readonly ttlMs: number;
  readonly info?: JsonObject;
  // Identify it to other hosts. Empty: it calls no host and no host calls it.
  readonly token_sha256?: string;
  readonly public_key?: string;
}

export interface HostRecord {
  readonly host_id: string;
  readonly name: string;
  readonly url: string | null;
  readonly site: string | null;
  readonly place: string | null;
  readonly started_at: number;
  readonly lease_until: number;
  readonly info: JsonObject;
  // Verifies its proofs (service/access/host-proof.ts).
  readonly public_key: string;
}

export interface HostLease {
  readonly host_id: string;
  // False: the lease had expired and stays expired.
  renew(): Promise<boolean>;
  setUrl(url: string): Promise<void>;
  release(): Promise<void>;
}

// Raised when hosts of the version before must not work beside those of this one, together with a migration that makes
// the database refuse to register them, also a host that was started before the migration. Generations 2 and 3 added
// columns without a default (this one; token_sha256 and public_key), generations 4 and 5 a constraint on this column.
const GENERATION = 5;

// A condition: the host with this id (an SQL expression) has a valid lease.
export const isAlive = (host: string) =>
  `EXISTS (SELECT FROM parley.hosts WHERE host_id = ${host} AND lease_until > clock_timestamp())`;

// A host id is used once: the database refuses an existing one.
export async function registerHost(
  db: Database,
  {
    host_id: id,
    name,
    url,
    site = null,
    place = null,
    ttlMs,
    info = {},
    token_sha256: tokenHash = '',
    public_key: key = '',
  }: NewHost,
): Promise<HostLease> {
  const lease = `clock_timestamp() + $2::double precision * interval '1 millisecond'`;
  await db.write({
    name: 'register-host',
    text: `INSERT INTO parley.hosts (host_id, name, started_at, lease_until, url, info_json, site, place, token_sha256,
      public_key, generation)
      VALUES ($1, $3, clock_timestamp(), ${lease}, $4, $5, $6, $7, $8, $9, ${GENERATION})`,
    values: [
      id,
      ttlMs,
      toText(name),
      url === null ? null : toText(url),
      JSON.stringify(info),
      site,
      place,
      tokenHash,
      key,
    ],
  });
  return {
    host_id: id,
    renew: async () =>
      (
        await db.read({
          name: 'renew-host',
          text: `UPDATE parley.hosts SET lease_until = ${lease} WHERE host_id = $1 AND lease_until > clock_timestamp()
            RETURNING host_id`,
          values: [id, ttlMs],
        })
      ).length === 1,
    setUrl: async (at) => {
      await db.read({
        name: 'set-url',
        text: 'UPDATE parley.hosts SET url = $2 WHERE host_id = $1 RETURNING host_id',
        values: [id, toText(at)],
      });
    },
    release: async () => {
      // Keeps the row, because it shows since when the site has no host.
      await db.read({
        name: 'release-host',
        text:
          'UPDATE parley.hosts SET lease_until = LEAST(lease_until, clock_timestamp()) WHERE host_id = $1 ' +
          'RETURNING host_id',
        values: [id],
      });
    },
  };
}

export function listLiveHosts(db: Database): Promise<HostRecord[]> {
  return listHosts(db, 'live-hosts', 'lease_until > clock_timestamp()');
}

export function listDeadHosts(db: Database): Promise<HostRecord[]> {
  return listHosts(db, 'dead-hosts', 'lease_until <= clock_timestamp()');
}

// Deleting the row is safe: a missing host counts as dead.
export async function forgetDeadHost(db: Database, hostId: string): Promise<boolean> {
  return (
    (
      await db.read({
        name: 'forget-host',
        text: 'DELETE FROM parley.hosts WHERE host_id = $1 AND lease_until <= clock_timestamp() RETURNING host_id',
        values: [hostId],
      })
    ).length === 1
  );
}

async function listHosts(db: Database, name: string, condition: string): Promise<HostRecord[]> {
  const rows = await db.read<Omit<HostRecord, 'info'> & { info_json: string }>({
    name,
    text: `SELECT host_id, name, url, site, place, info_json, public_key, (extract(epoch
      FROM started_at) * 1000)::bigint AS started_at, (extract(epoch FROM lease_until) * 1000)::bigint AS lease_until
      FROM parley.hosts WHERE ${condition} ORDER BY started_at, host_id`,
    values: [],
  });
  return rows.map((row) => ({
    host_id: row.host_id,
    name: fromText(row.name),
    url: row.url === null ? null : fromText(row.url),
    site: row.site,
    place: row.place,
    started_at: row.started_at,
    lease_until: row.lease_until,
    info: readStoredJson(row.info_json) as JsonObject,
    public_key: row.public_key,
  }));
}

// The time of the database, which all hosts use.
export async function readClock(db: Database): Promise<number> {
  const [row] = await db.read<{ now: number }>({
    name: 'read-clock',
    text: 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now',
    values: [],
  });
  return row?.now ?? 0;
}
