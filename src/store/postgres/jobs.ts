// Jobs of graphile-worker in the same database: a question that the policy will decide is a job for that time. It comes and goes in the
// transaction that asks and that resolves; whichever host is free then does it.
import type { Logger } from 'graphile-worker';
import type { Composition } from './compose.js';
import type { Database } from './database.js';
import { LOCK_SPACE } from './migrate.js';

export const JOBS_SCHEMA = 'graphile_worker';
export const DECIDE = 'parley_decide';

export interface DecideJob {
  readonly interaction_id: string;
}

export function addDecision(to: Composition, interactionId: string, dueAt: number): void {
  to.call('j', (param) => {
    const id = param(interactionId, 'text');
    return `${JOBS_SCHEMA}.add_job('${DECIDE}', json_build_object('interaction_id', ${id}), run_at := to_timestamp(${param(dueAt, 'double precision')} / 1000), job_key := 'decide:' || ${id})`;
  });
}

export function removeDecision(to: Composition, interactionId: string): void {
  to.call('k', (param) => `${JOBS_SCHEMA}.remove_job('decide:' || ${param(interactionId, 'text')})`);
}

const MIGRATING_JOBS = 3;

// One at a time: several who do it at once would get in each other's way. Loaded only here: who reads or writes runs needs nothing of it.
export async function migrateJobs(db: Database, url: string): Promise<void> {
  const { runMigrations } = await import('graphile-worker');
  const lock = await db.connect();
  try {
    await lock.query('SELECT pg_advisory_lock($1, $2)', [LOCK_SPACE, MIGRATING_JOBS]);
    await runMigrations({ connectionString: url, schema: JOBS_SCHEMA, logger: await silentLogger() });
  } finally {
    await lock.end().catch(() => {});
  }
}

// What it has to say is said by what fails.
export async function silentLogger(): Promise<Logger> {
  const { Logger: WorkerLogger } = await import('graphile-worker');
  return new WorkerLogger(() => () => {});
}
