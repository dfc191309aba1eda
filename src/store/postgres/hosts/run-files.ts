// Where the files of runs are, and the pending work on them: export beside the journal, removal with a deleted run, or
// giving up with a host that does not return.
import type { Database } from '../connection/database.js';
import type { Site } from './site.js';

export async function siteOf(db: Database, runId: string): Promise<string | null> {
  const [row] = await db.read<{ site: string | null }>({
    name: 'site-of',
    text: 'SELECT site FROM parley.runs WHERE run_id = $1',
    values: [runId],
  });
  return row?.site ?? null;
}

export interface Stranded {
  readonly run_id: string;
  // Its files are on that disk; otherwise it has none yet, but its paths exist only on hosts with its place.
  readonly hasSite: boolean;
}

// Runs that are queued for a site or a place that no host has served for this long. Goes from one place to the next in
// the index, so the cost depends on the number of places and not on the length of the queue. In the index, no site and
// no place are empty texts.
export async function listStranded(db: Database, goneMs: number, limit: number): Promise<Stranded[]> {
  const since = `statement_timestamp() - $1::double precision * interval '1 millisecond'`;
  const [site, place] = [`COALESCE(site, '')`, `COALESCE(place, '')`];
  const select = (condition: string): string =>
    `SELECT ${site} AS site, ${place} AS place FROM parley.runs WHERE status = 'queued' ${condition}
      ORDER BY ${site}, ${place} LIMIT 1`;
  return db.read<Stranded>({
    name: 'list-stranded',
    text: `WITH RECURSIVE places AS (
        (${select('')})
        UNION ALL
        SELECT following.* FROM places,
          LATERAL (${select(`AND (${site}, ${place}) > (places.site, places.place)`)}) AS following
      )
      SELECT run.run_id, places.site <> '' AS "hasSite" FROM places,
        LATERAL (SELECT run_id, queued_at FROM parley.runs
          WHERE status = 'queued' AND ${site} = places.site AND ${place} = places.place
            AND queued_at < (extract(epoch FROM ${since}) * 1000)::bigint
          ORDER BY queued_at, run_id LIMIT $2) AS run
      WHERE (places.site <> '' OR places.place <> '')
        AND NOT EXISTS (SELECT FROM parley.hosts WHERE lease_until > ${since}
          AND CASE WHEN places.site <> '' THEN site = places.site ELSE place = places.place END)
      ORDER BY run.queued_at, run.run_id LIMIT $2`,
    values: [goneMs, limit],
  });
}

// Inactive runs whose exported files are incomplete or missing, except for those that have just changed.
export async function listUnexported(db: Database, { site, place }: Site, limit: number): Promise<string[]> {
  return ids(
    await db.read({
      name: 'list-unexported',
      text: `SELECT run_id FROM parley.runs
        WHERE exported_seq < rasp_seq AND status IN ('waiting_user', 'succeeded', 'failed', 'canceled')
      AND to_timestamp(updated_at / 1000.0) < clock_timestamp() - interval '3 seconds' AND (site = $1::text
        OR (site IS NULL AND place = $2::text)) ORDER BY updated_at LIMIT $3`,
      values: [site, place, limit],
    }),
  );
}

export async function markExported(db: Database, runId: string, seq: number): Promise<void> {
  await db.read({
    name: 'mark-exported',
    text:
      'UPDATE parley.runs SET exported_seq = $2::bigint WHERE run_id = $1 AND exported_seq < $2::bigint ' +
      'RETURNING run_id',
    values: [runId, seq],
  });
}

// Lists deleted runs that may have files at this site.
export async function listLeftovers(
  db: Database,
  { site, place }: Site,
  { except, limit }: { readonly except: readonly string[]; readonly limit: number },
): Promise<string[]> {
  return ids(
    await db.read({
      name: 'list-leftovers',
      text:
        'SELECT run_id FROM parley.leftovers WHERE (site = $1::text OR (site IS NULL AND place = $2::text)) ' +
        'AND run_id <> ALL($3::text[]) ORDER BY run_id LIMIT $4',
      values: [site, place, except, limit],
    }),
  );
}

export async function forgetLeftover(db: Database, runId: string): Promise<void> {
  await db.read({
    name: 'forget-leftover',
    text: 'DELETE FROM parley.leftovers WHERE run_id = $1 RETURNING run_id',
    values: [runId],
  });
}

function ids(rows: readonly { readonly run_id?: string }[]): string[] {
  return rows.map(({ run_id: id }) => id as string);
}
