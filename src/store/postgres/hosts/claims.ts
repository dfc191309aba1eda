// Which host a run belongs to: who may begin it, who takes it over from a host that is gone, who has a process waiting
// with it. What a host may WRITE of a run is looked at with each change; this only keeps hosts from getting in each
// other's way.
import type { RunRecord } from '../../store.js';
import type { Database } from '../connection/database.js';
import { isAlive } from './host-lease.js';
import { loadRun } from '../run-rows.js';
import type { Site } from './site.js';

// Long enough to prepare a turn; a host that dies meanwhile holds nothing up for longer.
const RESERVED = `interval '10 seconds'`;

// Hosts that stay, and play what others have created.
const SERVERS = `SELECT FROM parley.hosts
  WHERE lease_until > clock_timestamp() AND info_json::jsonb @> '{"serves":true}'`;

// Each run to one host: rows that another is just looking at are passed over. Only while this host has a lease. Who
// does not stay is given `only` what is its own, as long as others stay.
export async function claimQueued(
  db: Database,
  host: string | null,
  { site, place }: Site,
  limit: number,
  except: readonly string[],
  only: readonly string[] | null = null,
): Promise<string[]> {
  if (limit <= 0) return [];
  const rows = await db.read<{ run_id: string; queued_at: number }>({
    name: 'claim-queued',
    // A host that reserved the run and is dead has crashed before it could begin it.
    text: `UPDATE parley.runs AS claimed SET reserved_by = $1::text, reserved_until = clock_timestamp() + ${RESERVED},
      crashed_by = CASE WHEN reserved_by IS NULL OR reserved_by IS NOT DISTINCT
      FROM $1::text OR ${isAlive('claimed.reserved_by')}
        THEN crashed_by ELSE array_append(crashed_by, reserved_by) END WHERE run_id IN (
      SELECT run_id FROM parley.runs AS run
      WHERE status = 'queued' AND run_id <> ALL($5::text[]) AND ($6::text[] IS NULL OR run_id = ANY($6::text[])
      OR NOT EXISTS (${SERVERS}))
        AND (reserved_until IS NULL OR reserved_until <= clock_timestamp() OR reserved_by = $1::text)
        AND (site = $2::text OR (($2::text IS NULL OR site IS NULL) AND ($3::text IS NULL OR place IS NULL
          OR place = $3::text)))
        AND (resident IS NULL OR resident = $1::text OR NOT ${isAlive('run.resident')})
        AND ($1::text IS NULL OR ${isAlive('$1::text')})
      ORDER BY queued_at, run_id LIMIT $4 FOR UPDATE SKIP LOCKED) RETURNING run_id, queued_at`,
    values: [host, site, place, limit, except, only],
  });
  return rows.toSorted((a, b) => a.queued_at - b.queued_at || (a.run_id < b.run_id ? -1 : 1)).map((row) => row.run_id);
}

// A running run of a host that is gone, with an epoch that shuts out whatever is left of that host. Null: it is not
// like that any more. Done again, it finds what it did the first time.
export async function takeOver(
  db: Database,
  host: string,
  { run_id: runId, epoch }: RunRecord,
): Promise<RunRecord | null> {
  const [taken] = await db.read<{ run_id: string }>({
    name: 'take-over',
    // The lease of the owner is locked first: one that is being renewed right now is waited for.
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
      WHERE run_id = $1 AND owner = $2 AND status = 'running' AND epoch = $3::bigint + 1`,
    values: [runId, host, epoch],
  });
  return mine ? loadRun(db, runId) : null;
}

// Queued runs that this host has reserved and will not begin.
export async function releaseClaims(db: Database, host: string): Promise<void> {
  await db.read({
    name: 'release-claims',
    text: `UPDATE parley.runs SET reserved_by = NULL, reserved_until = NULL
      WHERE status = 'queued' AND reserved_by = $1::text RETURNING run_id`,
    values: [host],
  });
}

// This host has lost its lease and is alive: what others have counted as its crash was none.
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

// Not running, to be canceled, and without a living host that has a process for them.
export async function listWished(db: Database, limit: number): Promise<string[]> {
  return (
    await db.read<{ run_id: string }>({
      name: 'list-wished',
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

// Another host, which is alive, has a process that waits with it.
export async function isHeldElsewhere(db: Database, host: string, runId: string): Promise<boolean> {
  const [row] = await db.read<{ held: boolean }>({
    name: 'is-held',
    text: `SELECT resident <> $2::text AND ${isAlive('run.resident')} AS held FROM parley.runs AS run
      WHERE run_id = $1`,
    values: [runId, host],
  });
  return row?.held ?? false;
}

// Whether a host that is alive plays it, or has a process that waits with it.
export async function isPlayed(db: Database, runId: string): Promise<boolean> {
  const [row] = await db.read<{ played: boolean }>({
    name: 'is-played',
    text: `SELECT (status = 'running' AND ${isAlive('run.owner')}) OR ${isAlive('run.resident')} AS played
      FROM parley.runs AS run WHERE run_id = $1`,
    values: [runId],
  });
  return row?.played ?? false;
}

// Its process waits here: whoever goes on with the run must be here, as long as that is so.
export async function holdProcess(db: Database, host: string, runId: string): Promise<void> {
  await db.read({
    name: 'hold-process',
    text: `UPDATE parley.runs SET resident = $2::text WHERE run_id = $1::text AND owner = $2::text RETURNING run_id`,
    values: [runId, host],
  });
}

export async function letProcessGo(db: Database, host: string, runId: string): Promise<void> {
  await db.read({
    name: 'let-go',
    text: 'UPDATE parley.runs SET resident = NULL WHERE run_id = $1::text AND resident = $2::text RETURNING run_id',
    values: [runId, host],
  });
}
