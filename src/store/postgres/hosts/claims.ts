// Which host a run belongs to: which one may start it, which one takes it over from a dead host, and which one has a
// process that waits with it. Every write is checked separately (fence.ts); this only keeps hosts from interfering with
// each other.
import type { CancelRequest, RunRecord, StoredCancelRequest } from '../../store.js';
import { CHANNEL } from '../connection/compose.js';
import type { Database } from '../connection/database.js';
import { isAlive } from './host-lease.js';
import { loadRun } from '../run-rows.js';
import type { Site } from './site.js';

// Long enough to prepare a turn; a host that dies meanwhile delays the run by no more than this.
const RESERVED = `interval '10 seconds'`;

// Hosts of servers, which run turns that others have created.
const SERVERS = `SELECT FROM parley.hosts
  WHERE lease_until > clock_timestamp() AND info_json::jsonb @> '{"serves":true}'`;

// Queued runs that a host may start. $1 is the host, $2 and $3 its site and place, $4 runs to leave out, $5 the only
// runs that it claims while servers are alive (null: any).
const CLAIMABLE = `status = 'queued' AND run_id <> ALL($4::text[])
  AND ($5::text[] IS NULL OR run_id = ANY($5::text[]) OR NOT EXISTS (${SERVERS}))
  AND (reserved_until IS NULL OR reserved_until <= clock_timestamp() OR reserved_by = $1::text)
  AND (site = $2::text
    OR (($2::text IS NULL OR site IS NULL) AND ($3::text IS NULL OR place IS NULL OR place = $3::text)))
  AND (resident IS NULL OR resident = $1::text OR NOT ${isAlive('run.resident')})
  AND ($1::text IS NULL OR ${isAlive('$1::text')})`;

export interface Claimant {
  readonly host: string | null;
  readonly site: Site;
  // The only runs that it claims while servers are alive for the rest; null: any.
  readonly only?: readonly string[] | null;
}

// Whether there is a run that the claimant may start. Reserves nothing.
export async function peekQueued(
  db: Database,
  { host, site: { site, place }, only = null }: Claimant,
): Promise<boolean> {
  const rows = await db.read({
    name: 'peek-queued',
    text: `SELECT 1 AS found FROM parley.runs AS run WHERE ${CLAIMABLE} LIMIT 1`,
    values: [host, site, place, [], only],
  });
  return rows.length > 0;
}

// Reserves queued runs for one host, in the order of the queue. Skips rows that another host is claiming right now.
// Returns none unless the host has a valid lease.
export async function claimQueued(
  db: Database,
  { host, site: { site, place }, only = null }: Claimant,
  { limit, except }: { readonly limit: number; readonly except: readonly string[] },
): Promise<string[]> {
  if (limit <= 0) return [];
  const rows = await db.read<{ run_id: string; queued_at: number }>({
    name: 'claim-queued',
    // A dead host that had reserved the run crashed before it could start it.
    text: `UPDATE parley.runs AS claimed SET reserved_by = $1::text, reserved_until = clock_timestamp() + ${RESERVED},
      crashed_by = CASE WHEN reserved_by IS NULL OR reserved_by IS NOT DISTINCT
      FROM $1::text OR ${isAlive('claimed.reserved_by')}
        THEN crashed_by ELSE array_append(crashed_by, reserved_by) END WHERE run_id IN (
      SELECT run_id FROM parley.runs AS run WHERE ${CLAIMABLE}
      ORDER BY queued_at, run_id LIMIT $6 FOR UPDATE SKIP LOCKED) RETURNING run_id, queued_at`,
    values: [host, site, place, except, only, limit],
  });
  return rows.toSorted((a, b) => a.queued_at - b.queued_at || (a.run_id < b.run_id ? -1 : 1)).map((row) => row.run_id);
}

// Takes a running run from a dead host, with an epoch that refuses later writes of that host. A run that belongs to
// this host already is returned as it is, so the call is safe to repeat. Null: another live host has it, or it is not
// running.
export async function takeOver(
  db: Database,
  host: string,
  { run_id: runId, epoch }: RunRecord,
): Promise<RunRecord | null> {
  const [taken] = await db.read<{ run_id: string }>({
    name: 'take-over',
    // Locks the lease of the owner first, so that a renewal in progress is awaited.
    text: `WITH owners AS (SELECT lease_until FROM parley.hosts WHERE host_id = (SELECT owner FROM parley.runs
      WHERE run_id = $1::text) FOR SHARE)
      UPDATE parley.runs
      SET owner = $2::text, epoch = epoch + 1, reserved_by = NULL, reserved_until = NULL, at_work = false,
        crashed_by = CASE WHEN at_work AND owner IS NOT NULL THEN array_append(crashed_by, owner) ELSE crashed_by END
      WHERE run_id = $1::text AND status = 'running' AND epoch = $3::bigint AND NOT EXISTS (SELECT FROM owners
        WHERE lease_until > clock_timestamp()) AND ${isAlive('$2::text')} RETURNING run_id`,
    values: [runId, host, epoch],
  });
  if (taken) return loadRun(db, runId);
  const [mine] = await db.read<{ run_id: string }>({
    name: 'taken-before',
    text: `SELECT run_id FROM parley.runs
      WHERE run_id = $1 AND owner = $2 AND status = 'running' AND epoch IN ($3::bigint, $3::bigint + 1)`,
    values: [runId, host, epoch],
  });
  return mine ? loadRun(db, runId) : null;
}

// Releases queued runs that this host has reserved and will not start.
export async function releaseClaims(db: Database, host: string): Promise<void> {
  await db.read({
    name: 'release-claims',
    text: `UPDATE parley.runs SET reserved_by = NULL, reserved_until = NULL
      WHERE status = 'queued' AND reserved_by = $1::text RETURNING run_id`,
    values: [host],
  });
}

// This host has lost its lease but is alive: removes the crashes that others have counted for it.
export async function forgiveCrashes(db: Database, host: string): Promise<void> {
  await releaseClaims(db, host);
  await db.read({
    name: 'forgive-crashes',
    text: `UPDATE parley.runs SET crashed_by = array_remove(crashed_by, $1::text)
      WHERE crashed_by <> '{}' AND status IN ('queued', 'running', 'waiting_user') AND crashed_by @> ARRAY[$1::text]
        RETURNING run_id`,
    values: [host],
  });
}

// Keeps the first request. Safe to repeat. Returns whether this call stored it.
export async function requestCancel(
  db: Database,
  { runId, request, hint }: { readonly runId: string; readonly request: CancelRequest; readonly hint: string },
): Promise<boolean> {
  const rows = await db.read({
    name: 'request-cancel',
    text: `WITH requested AS (
      UPDATE parley.runs SET cancel_requested_json = $2::text, updated_at = $3::bigint
      WHERE run_id = $1::text AND cancel_requested_json IS NULL AND status IN ('queued', 'running', 'waiting_user')
      RETURNING run_id
    ) SELECT run_id, pg_notify('${CHANNEL}', $4::text) FROM requested`,
    values: [runId, JSON.stringify({ ...request, unrecorded: true } satisfies StoredCancelRequest), request.at, hint],
  });
  return rows.length > 0;
}

// Runs with a cancel request that are not running and have no live host with a process for them.
export async function listCancelRequests(db: Database, limit: number): Promise<string[]> {
  return (
    await db.read<{ run_id: string }>({
      name: 'list-cancel-requests',
      text: `SELECT run_id FROM parley.runs AS run
        WHERE cancel_requested_json IS NOT NULL AND status IN ('queued', 'waiting_user')
        AND NOT COALESCE(${isAlive('run.resident')}, false) ORDER BY run_id LIMIT $1`,
      values: [limit],
    })
  ).map((row) => row.run_id);
}

// Running runs that belong to this host.
export async function listOwned(db: Database, host: string, limit: number): Promise<string[]> {
  return (
    await db.read<{ run_id: string }>({
      name: 'list-owned',
      text: `SELECT run_id FROM parley.runs WHERE owner = $1 AND status = 'running' ORDER BY run_id LIMIT $2`,
      values: [host, limit],
    })
  ).map((row) => row.run_id);
}

// Whether another live host has a process that waits with the run.
export async function isHeldElsewhere(db: Database, host: string, runId: string): Promise<boolean> {
  const [row] = await db.read<{ held: boolean }>({
    name: 'is-held',
    text: `SELECT resident <> $2::text AND ${isAlive('run.resident')} AS held FROM parley.runs AS run
      WHERE run_id = $1`,
    values: [runId, host],
  });
  return row?.held ?? false;
}

// Whether a live host runs it, or has a process that waits with it.
export async function isRunElsewhere(db: Database, runId: string): Promise<boolean> {
  const [row] = await db.read<{ in_use: boolean }>({
    name: 'is-in-use',
    text: `SELECT (status = 'running' AND ${isAlive('run.owner')}) OR ${isAlive('run.resident')} AS in_use
      FROM parley.runs AS run WHERE run_id = $1`,
    values: [runId],
  });
  return row?.in_use ?? false;
}

// The process of the run waits on this host, so only this host can continue it for now.
export async function holdProcess(db: Database, host: string, runId: string): Promise<void> {
  await db.read({
    name: 'hold-process',
    text: `UPDATE parley.runs SET resident = $2::text WHERE run_id = $1::text AND owner = $2::text RETURNING run_id`,
    values: [runId, host],
  });
}

export async function releaseProcess(db: Database, host: string, runId: string): Promise<void> {
  await db.read({
    name: 'let-go',
    text: 'UPDATE parley.runs SET resident = NULL WHERE run_id = $1::text AND resident = $2::text RETURNING run_id',
    values: [runId, host],
  });
}
