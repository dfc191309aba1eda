// Reads short forms of runs and questions from PostgreSQL: large columns stay in the database until their short form is
// needed.
import { unlessDamaged } from '../../kernel/stored-json.js';
import { inGroups } from '../../process/yield-to-others.js';
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
import type { Database } from './connection/database.js';
import { selectPending } from './interactions.js';
import { selectRuns } from './run-rows.js';
import { fromText } from './connection/text.js';

const SELECT_RUNS = `SELECT run_id, request_id, request_digest, ${RUN_COLUMNS.map(smallColumn).join(', ')}, status,
  attempt_number, epoch,
  cancel_requested_json, waited_ms, cardinality(crashed_by) AS crashes, created_at, updated_at, rasp_seq, fcmp_seq, ts,
    digest FROM parley.runs`;
const SELECT_INTERACTIONS = `SELECT interaction_id, run_id, attempt_number,
  ${INTERACTION_COLUMNS.map(smallColumn).join(', ')}, state, asked_at, due_at, decides FROM parley.interactions`;
const FINDS = { id: 'interaction_id = $1', pending: `run_id = $1 AND state = 'pending'` } as const;
// Each row has columns of up to 48 KiB in total, which are parsed.
const GROUP_ROWS = 25;

export class PostgresSummaries implements SummaryReader {
  readonly #db: Database;
  readonly #summaries = new Summaries();

  constructor(db: Database) {
    this.#db = db;
  }

  async listRuns(filter: RunFilter): Promise<RunSummary[]> {
    const summaries: RunSummary[] = [];
    const rows = await this.#db.read<RunSummaryRow>(selectRuns('summarise-runs', SELECT_RUNS, filter));
    for await (const row of inGroups(rows, GROUP_ROWS)) {
      const run = await this.#run(row);
      if (run) summaries.push(run);
    }
    return summaries;
  }

  async loadRun(runId: string): Promise<RunSummary | null> {
    const [row] = await this.#db.read<RunSummaryRow>({
      name: 'summarise-run',
      text: `${SELECT_RUNS} WHERE run_id = $1`,
      values: [runId],
    });
    return row ? this.#run(row) : null;
  }

  async loadRuns(runIds: readonly string[]): Promise<ReadonlyMap<string, RunSummary>> {
    const rows = await this.#db.read<RunSummaryRow>({
      name: 'summarise-runs-by-id',
      text: `${SELECT_RUNS} WHERE run_id = ANY($1)`,
      values: [runIds],
    });
    const summaries = new Map<string, RunSummary>();
    for await (const row of inGroups(rows, GROUP_ROWS)) {
      const run = await unlessDamaged(this.#run(row));
      if (run) summaries.set(run.run_id, run);
    }
    return summaries;
  }

  async #run(row: RunSummaryRow): Promise<RunSummary | null> {
    const run = await this.#summaries.run(row, (column) =>
      this.#load(`run-${column}`, `SELECT ${column} AS text FROM parley.runs WHERE run_id = $1`, row.run_id),
    );
    return run && { ...run, request_id: fromText(run.request_id) };
  }

  async listPending(filter: PendingFilter): Promise<InteractionSummary[]> {
    const summaries: InteractionSummary[] = [];
    for (let { after } = filter; ;) {
      const rows = await this.#db.read<InteractionSummaryRow>(
        selectPending('summarise-pending', SELECT_INTERACTIONS, { ...filter, ...(after ? { after } : {}) }),
      );
      for await (const row of inGroups(rows, GROUP_ROWS)) {
        const interaction = await unlessDamaged(this.#interaction(row));
        if (interaction && summaries.length < filter.limit) summaries.push(interaction);
      }
      after = rows.at(-1);
      if (rows.length < filter.limit || summaries.length === filter.limit) return summaries;
    }
  }

  async loadInteraction(interactionId: string): Promise<InteractionSummary | null> {
    return this.#find('id', interactionId);
  }

  async loadPendingInteraction(runId: string): Promise<InteractionSummary | null> {
    return this.#find('pending', runId);
  }

  async #find(by: keyof typeof FINDS, value: string): Promise<InteractionSummary | null> {
    const [row] = await this.#db.read<InteractionSummaryRow>({
      name: `summarise-interaction-${by}`,
      text: `${SELECT_INTERACTIONS} WHERE ${FINDS[by]}`,
      values: [value],
    });
    return row ? this.#interaction(row) : null;
  }

  #interaction(row: InteractionSummaryRow): Promise<InteractionSummary | null> {
    const load = (column: string) =>
      this.#load(
        `interaction-${column}`,
        `SELECT ${column} AS text FROM parley.interactions WHERE interaction_id = $1`,
        row.interaction_id,
      );
    return this.#summaries.interaction(row, load);
  }

  async #load(name: string, text: string, id: string): Promise<string | null> {
    const [row] = await this.#db.read<{ text: string | null }>({ name: `load-${name}`, text, values: [id] });
    return row?.text ?? null;
  }
}
