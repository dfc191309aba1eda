// Jobs that earlier versions of Parley kept in the schema graphile_worker, to decide questions. Nothing reads them any
// more. Only jobs with Parley's own task identifier are deleted: another program may use the same schema.
import type { Database } from './database.js';

const SCHEMA = 'graphile_worker';
const TASK = 'parley_decide';
// Task identifiers of others that a message names.
const NAMED = 5;

export interface OldJobs {
  readonly deleted: number;
  // Task identifiers of other programs, as many as a message names.
  readonly others: readonly string[];
}

// Null: the schema does not exist, or is not one of graphile-worker. Repeating it changes nothing.
export async function deleteOldJobs(db: Database): Promise<OldJobs | null> {
  const client = await db.connect();
  try {
    const known = 'SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AS known';
    const {
      rows: [schema],
    } = await client.query<{ known: boolean }>(known, [`${SCHEMA}._private_jobs`, `${SCHEMA}._private_tasks`]);
    if (!schema?.known) return null;
    const { rowCount } = await client.query(
      `DELETE FROM ${SCHEMA}._private_jobs WHERE task_id IN (
      SELECT id FROM ${SCHEMA}._private_tasks WHERE identifier = $1)`,
      [TASK],
    );
    const { rows } = await client.query<{ identifier: string }>(
      `SELECT identifier FROM ${SCHEMA}._private_tasks WHERE identifier <> $1 ORDER BY identifier LIMIT ${NAMED}`,
      [TASK],
    );
    return { deleted: rowCount ?? 0, others: rows.map(({ identifier }) => identifier) };
  } finally {
    await client.end().catch(() => {});
  }
}
