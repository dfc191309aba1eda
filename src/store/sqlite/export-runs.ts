// Reads the runs of a data directory with their rows, for a copy elsewhere; the caller holds the lock of the directory.
// Nothing is changed: an older file is migrated in a transaction that is rolled back.
import { join } from 'node:path';
import { damageText } from '../../kernel/damage-texts.js';
import { DamagedDataError } from '../../kernel/stored-json.js';
import type { InteractionRow } from '../rows.js';
import { FIRST_SEGMENT } from '../store.js';
import type { DeliveryRow, RuntimeRow, SegmentRow, StoredRun, TurnRow } from '../stored-run.js';
import { withDataDirErrors } from './data-dir.js';
import { checkTables } from './check-tables.js';
import { checkVersion, climb, NEWEST_VERSION } from './migrate.js';
import { openDatabase, type Database } from './open-database.js';
import { readSegments, type JournalSource } from './read-journal.js';
import { GroupReader } from './recent/load-groups.js';
import { withRecentHeads } from './recent/recent-flushes.js';
import type { TurnCount } from '../add-up-turns.js';
import { listDeletedTurns } from './totals.js';

type Statement = ReturnType<Database['prepare']>;

const RUN = 'SELECT * FROM runs WHERE run_id > ? ORDER BY run_id LIMIT 1';
const RUNTIME =
  'SELECT runtime.* FROM request_interactive_runtime AS runtime JOIN runs USING (request_id) WHERE run_id = ?';

// At most this much of a journal is in memory at once, unless a flush is larger.
const PAGE_BYTES = 1024 * 1024;

export class RunExport {
  readonly #db: Database;
  // Keeps a reference to each statement in use: otherwise it would be garbage-collected in the middle of its rows.
  readonly #run: Statement;
  readonly #runtime: Statement;
  readonly #interactions: Statement;
  readonly #turns: Statement;
  readonly #deliveries: Statement;
  readonly #source: JournalSource;

  private constructor(db: Database) {
    this.#db = db;
    this.#run = db.prepare(RUN);
    this.#runtime = db.prepare(RUNTIME);
    this.#interactions = db.prepare('SELECT * FROM interactions WHERE run_id = ? ORDER BY interaction_id');
    this.#turns = db.prepare('SELECT * FROM turns WHERE run_id = ? ORDER BY attempt_number');
    this.#deliveries = db.prepare('SELECT * FROM deliveries WHERE run_id = ? ORDER BY delivery_id');
    this.#source = { db, recent: new GroupReader(db) };
  }

  static open(path: string): Promise<RunExport> {
    return withDataDirErrors(path, async () => new RunExport(await openAsNewest(join(path, 'parley.db'))));
  }

  count(): number {
    return (this.#db.prepare('SELECT COUNT(*) AS runs FROM runs').get() as { runs: number }).runs;
  }

  // Runs that are queued or running.
  listMoving(): string[] {
    return (
      this.#db.prepare(`SELECT run_id FROM runs WHERE status IN ('queued', 'running') ORDER BY run_id`).all() as {
        run_id: string;
      }[]
    ).map((row) => row.run_id);
  }

  // Oldest first. One run at a time is in memory, without its journal.
  *runs(): Generator<StoredRun> {
    for (let after = ''; ;) {
      this.#source.recent.refresh();
      const row = this.#run.get(after) as StoredRun['run'] | undefined;
      if (!row) return;
      const run = withRecentHeads(row, this.#source.recent.newestOf(row.run_id));
      after = run.run_id;
      const stored: StoredRun = {
        run,
        runtime: (this.#runtime.get(after) as RuntimeRow | undefined) ?? null,
        interactions: this.#interactions.all(after) as unknown as InteractionRow[],
        turns: this.#turns.all(after) as unknown as TurnRow[],
        deliveries: this.#deliveries.all(after) as unknown as DeliveryRow[],
      };
      const rows = [run, stored.runtime, ...stored.interactions, ...stored.turns, ...stored.deliveries];
      if (rows.some(hasInexact)) throw new DamagedDataError(damageText('damage.too_large', { run: after }));
      yield stored;
    }
  }

  // The flushes of the journal, as they were committed: the digest of a journal is chained flush by flush.
  *segments(runId: string): Generator<SegmentRow> {
    for (const protocol of ['fcmp', 'rasp'] as const)
      for (let afterSeq = FIRST_SEGMENT; ;) {
        const page = readSegments(this.#source, runId, protocol, { afterSeq, maxBytes: PAGE_BYTES });
        for (const segment of page) yield { run_id: runId, protocol, ...segment };
        const last = page.at(-1);
        if (!last) break;
        afterSeq = last.seq_from;
      }
  }

  // Deliveries of deleted runs that have not arrived yet.
  strayDeliveries(): DeliveryRow[] {
    return this.#db
      .prepare('SELECT * FROM deliveries WHERE run_id NOT IN (SELECT run_id FROM runs) ORDER BY delivery_id')
      .all() as unknown as DeliveryRow[];
  }

  deletedTurns(): TurnCount[] {
    return listDeletedTurns(this.#db).map(({ subject: _subject, ...count }) => count);
  }

  // Rolls the migration back.
  close(): void {
    this.#db.close();
  }
}

// Whether a number was too large to be read exactly: the copy would differ.
function hasInexact(row: object | null): boolean {
  return Object.values(row ?? {}).some((value) => Number.isInteger(value) && !Number.isSafeInteger(value));
}

async function openAsNewest(file: string): Promise<Database> {
  const db = await openDatabase(file, { readOnly: true });
  try {
    if (checkVersion(db) === NEWEST_VERSION) {
      checkTables(db);
      return db;
    }
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
    climb(db, version);
    checkTables(db);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
