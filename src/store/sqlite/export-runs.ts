// Hands out the runs of a data directory as their rows stand, for a copy elsewhere; whoever calls has the directory's lock.
// Nothing is changed: a file of an older version is brought up to date in a transaction that is taken back.
import { join } from 'node:path';
import type { InteractionRow } from '../rows.js';
import type { DeliveryRow, RuntimeRow, SegmentRow, StoredRun, TurnRow } from '../stored-run.js';
import { usable } from './data-dir.js';
import { checkVersion, NEWEST_VERSION } from './migrate.js';
import { MIGRATIONS } from './migrations.js';
import { openDatabase, type Database } from './open-database.js';

export class RunExport {
  readonly #db: Database;

  private constructor(db: Database) {
    this.#db = db;
  }

  static open(path: string): Promise<RunExport> {
    return usable(path, async () => new RunExport(await openAsNewest(join(path, 'parley.db'))));
  }

  count(): number {
    return (this.#db.prepare('SELECT COUNT(*) AS runs FROM runs').get() as { runs: number }).runs;
  }

  // Those that are queued or running.
  listMoving(): string[] {
    return (this.#db.prepare(`SELECT run_id FROM runs WHERE status IN ('queued', 'running') ORDER BY run_id`).all() as { run_id: string }[]).map((row) => row.run_id);
  }

  // Oldest first. One at a time is in memory, without its journal.
  *runs(): Generator<StoredRun> {
    const next = this.#db.prepare('SELECT * FROM runs WHERE run_id > ? ORDER BY run_id LIMIT 1');
    for (let run = next.get('') as StoredRun['run'] | undefined; run; run = next.get(run.run_id) as StoredRun['run'] | undefined) yield this.#withRows(run);
  }

  #withRows(run: StoredRun['run']): StoredRun {
    const rows = <R>(table: string, order: string) => this.#db.prepare(`SELECT * FROM ${table} WHERE run_id = ? ORDER BY ${order}`).all(run.run_id) as R[];
    return {
      run,
      runtime: (this.#db.prepare('SELECT * FROM request_interactive_runtime WHERE request_id = ?').get(run.request_id) as RuntimeRow | undefined) ?? null,
      interactions: rows<InteractionRow>('interactions', 'interaction_id'),
      turns: rows<TurnRow>('turns', 'attempt_number'),
      deliveries: rows<DeliveryRow>('deliveries', 'delivery_id'),
    };
  }

  segments(runId: string): Iterable<SegmentRow> {
    return this.#db.prepare('SELECT run_id, protocol, seq_from, seq_to, ts_from, ts_to, body FROM segments WHERE run_id = ? ORDER BY protocol, seq_from').iterate(runId) as unknown as Iterable<SegmentRow>;
  }

  // Of runs that were deleted: they are still to arrive.
  strayDeliveries(): DeliveryRow[] {
    return this.#db.prepare('SELECT * FROM deliveries WHERE run_id NOT IN (SELECT run_id FROM runs) ORDER BY delivery_id').all() as unknown as DeliveryRow[];
  }

  // What was brought up to date only to be read is taken back with it.
  close(): void {
    this.#db.close();
  }
}

async function openAsNewest(file: string): Promise<Database> {
  const db = await openDatabase(file, { readOnly: true });
  try {
    if (checkVersion(db) === NEWEST_VERSION) return db;
  } catch (error) {
    db.close();
    throw error;
  }
  db.close();
  return openMigrated(file);
}

async function openMigrated(file: string): Promise<Database> {
  const db = await openDatabase(file);
  try {
    const version = checkVersion(db);
    db.exec('BEGIN IMMEDIATE');
    for (const { up } of MIGRATIONS.filter((each) => each.version > version)) up(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
