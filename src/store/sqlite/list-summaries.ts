// Reads short forms of runs and questions from SQLite. Reading is synchronous, and a row with a large column costs time
// in proportion to its size: rows are read in groups of bounded size and number, and other work runs between the
// groups.
import { unlessDamaged } from '../../kernel/stored-json.js';
import { yieldToOthers } from '../../process/yield-to-others.js';
import type { PendingFilter, RunFilter } from '../store.js';
import type { InteractionSummary, RunSummary, SummaryReader } from '../summary-reader.js';
import {
  INTERACTION_COLUMNS,
  RUN_COLUMNS,
  smallColumn,
  Summaries,
  type InteractionSummaryRow,
  type RunSummaryRow,
} from '../summaries.js';
import { selectPending, selectRuns } from './list-rows.js';
import type { Database } from './open-database.js';
import { withRecentHeads, type RecentView } from './recent/recent-flushes.js';

// About two milliseconds of reading.
const GROUP_BYTES = 8 * 1024 * 1024;
// Each row has small columns of up to 48 KiB in total, which are parsed.
const GROUP_ROWS = 25;

const RUN = `run_id, request_id, request_digest, ${RUN_COLUMNS.map(smallColumn).join(', ')}, status, attempt_number,
  epoch,
  cancel_requested_json, waited_ms, crashes, created_at, updated_at, rasp_seq, fcmp_seq, ts, digest`;
const INTERACTION =
  `interaction_id, run_id, attempt_number, ${INTERACTION_COLUMNS.map(smallColumn).join(', ')}, ` +
  'state, asked_at, due_at, decides';

const RUNS = `SELECT ${RUN} FROM runs WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY run_id DESC`;

interface Sized {
  readonly id: string;
  readonly bytes: number;
}

export class SqliteSummaries implements SummaryReader {
  readonly #db: Database;
  readonly #recent: RecentView;
  readonly #summaries = new Summaries();

  constructor(db: Database, recent: RecentView) {
    this.#db = db;
    this.#recent = recent;
  }

  async listRuns(filter: RunFilter): Promise<RunSummary[]> {
    this.#recent.refresh();
    const sized = selectRuns(this.#db, 'run_id AS id, octet_length(spec_json) AS bytes', filter) as Sized[];
    const summaries: RunSummary[] = [];
    for await (const row of this.#rows<RunSummaryRow>(sized, RUNS)) {
      const run = await this.#run(row);
      if (run) summaries.push(run);
    }
    return summaries;
  }

  async loadRuns(runIds: readonly string[]): Promise<ReadonlyMap<string, RunSummary>> {
    this.#recent.refresh();
    const query = `SELECT run_id AS id, octet_length(spec_json) AS bytes FROM runs
      WHERE run_id IN (SELECT value FROM json_each(?))`;
    const sized = this.#db.prepare(query).all(JSON.stringify(runIds)) as unknown as Sized[];
    const summaries = new Map<string, RunSummary>();
    for await (const row of this.#rows<RunSummaryRow>(sized, RUNS)) {
      const run = await unlessDamaged(this.#run(row));
      if (run) summaries.set(run.run_id, run);
    }
    return summaries;
  }

  async loadRun(runId: string): Promise<RunSummary | null> {
    this.#recent.refresh();
    const row = this.#db.prepare(`SELECT ${RUN} FROM runs WHERE run_id = ?`).get(runId) as RunSummaryRow | undefined;
    return row ? this.#run(row) : null;
  }

  #run(row: RunSummaryRow): Promise<RunSummary | null> {
    return this.#summaries.run(withRecentHeads(row, this.#recent.newestOf(row.run_id)), (column) =>
      this.#load(`SELECT ${column} AS text FROM runs WHERE run_id = ?`, row.run_id),
    );
  }

  async listPending(filter: PendingFilter): Promise<InteractionSummary[]> {
    const summaries: InteractionSummary[] = [];
    for (let { after } = filter; ;) {
      const sized = selectPending(
        this.#db,
        'interaction_id AS id, octet_length(question_json) AS bytes, asked_at, interaction_id',
        { ...filter, ...(after ? { after } : {}) },
      ) as (Sized & { asked_at: number; interaction_id: string })[];
      const query = `SELECT ${INTERACTION} FROM interactions WHERE interaction_id IN (SELECT value
        FROM json_each(?)) AND state = 'pending' ORDER BY asked_at, interaction_id`;
      for await (const row of this.#rows<InteractionSummaryRow>(sized, query)) {
        const interaction = await unlessDamaged(this.#interaction(row));
        if (interaction && summaries.length < filter.limit) summaries.push(interaction);
      }
      after = sized.at(-1);
      if (sized.length < filter.limit || summaries.length === filter.limit) return summaries;
    }
  }

  async loadInteraction(interactionId: string): Promise<InteractionSummary | null> {
    return this.#find('interaction_id = ?', interactionId);
  }

  async loadPendingInteraction(runId: string): Promise<InteractionSummary | null> {
    return this.#find(`run_id = ? AND state = 'pending'`, runId);
  }

  async #find(condition: string, value: string): Promise<InteractionSummary | null> {
    const row = this.#db.prepare(`SELECT ${INTERACTION} FROM interactions WHERE ${condition}`).get(value) as
      | InteractionSummaryRow
      | undefined;
    return row ? this.#interaction(row) : null;
  }

  #interaction(row: InteractionSummaryRow): Promise<InteractionSummary | null> {
    return this.#summaries.interaction(row, (column) =>
      this.#load(`SELECT ${column} AS text FROM interactions WHERE interaction_id = ?`, row.interaction_id),
    );
  }

  async *#rows<Row>(sized: readonly Sized[], query: string): AsyncGenerator<Row, void> {
    for (let from = 0; from < sized.length;) {
      let to = from;
      const last = Math.min(sized.length, from + GROUP_ROWS);
      for (let bytes = 0; to < last && (to === from || bytes + (sized[to]?.bytes ?? 0) <= GROUP_BYTES); to += 1)
        bytes += sized[to]?.bytes ?? 0;
      if (from > 0) {
        await yieldToOthers();
        this.#recent.refresh();
      }
      yield* this.#db.prepare(query).all(JSON.stringify(sized.slice(from, to).map(({ id }) => id))) as Row[];
      from = to;
    }
  }

  async #load(query: string, id: string): Promise<string | null> {
    await yieldToOthers();
    return (this.#db.prepare(query).get(id) as { text: string | null } | undefined)?.text ?? null;
  }
}
