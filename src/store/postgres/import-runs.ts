// Copies runs from another store row by row, each run in its own transaction. Skips a run that exists here already,
// does not change one that differs, and rolls back a run whose journal does not match its digest when it is read back.
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { DamagedDataError, readStoredJson } from '../../kernel/stored-json.js';
import type { TurnCount } from '../add-up-turns.js';
import type { InteractionRow } from '../rows.js';
import type { Resolution, RunSpec } from '../store.js';
import type { DeliveryRow, RuntimeRow, SegmentRow, StoredRun, TurnRow } from '../stored-run.js';
import { digestUpTo } from './append-run.js';
import { CHANNEL } from './connection/compose.js';
import { LOCK_RUNS } from './create-run.js';
import { Database, type Reader } from './connection/database.js';
import { writeHint } from './hosts/hints.js';
import { insertStatements, type Table } from './insert-rows.js';
import { describeLoss, isLost, isRefusedNow } from './connection/lost-connection.js';
import { checkMigrated } from './connection/migrate.js';
import type { Site } from './hosts/site.js';
import { pairKey, toText } from './connection/text.js';
import type { AuditTrace } from '../audit.js';
import { addTokenRow, type TokenRow } from './access/token-rows.js';

// conflict: a run with other content has the id or the request id. broken: the journal does not match its digest.
export type ImportOutcome = 'copied' | 'known' | 'conflict' | 'broken';

interface StoredIds {
  readonly run_id: string;
  readonly request_id: string;
  readonly request_digest: string;
  readonly rasp_seq: number;
  readonly digest: string;
}

const UNIQUE_VIOLATION = '23505';
// How much of a journal is sent at once.
const BATCH_BYTES = 1024 * 1024;
const BATCH_ROWS = 200;

export class RunImport {
  readonly #db: Database;
  // A separate connection: an import may take longer than the usual timeout.
  readonly #client: Client;
  readonly #reader: Reader;
  readonly #instance = randomUUID();

  private constructor(db: Database, client: Client) {
    this.#db = db;
    this.#client = client;
    this.#reader = { read: (statement) => this.#query(statement.text, statement.values) };
  }

  static async open(url: string): Promise<RunImport> {
    const db = new Database(url, { connections: 1 });
    try {
      await checkMigrated(db);
      return new RunImport(db, await db.connect());
    } catch (error) {
      await db.close();
      throw error;
    }
  }

  // An existing name is left alone.
  importToken(token: TokenRow, trace: AuditTrace): Promise<boolean> {
    const { name, person = name, role } = token;
    return addTokenRow(this.#db, token, {
      ...trace,
      type: 'token.added',
      body: { name, person, role, imported: true },
    });
  }

  // The place of the database, without secrets.
  get name(): string {
    return this.#db.place.name;
  }

  async importRun(stored: StoredRun, segments: () => Iterable<SegmentRow>, site: Site): Promise<ImportOutcome> {
    const before = await this.#compare(stored);
    if (before !== null) return before;
    try {
      return await this.#transact(async () => {
        await this.#query(LOCK_RUNS.text);
        // The run may have been created while the lock was awaited.
        const since = await this.#compare(stored);
        if (since !== null) return since;
        await this.#insertRun(stored, site);
        await this.#insertSegments(segments());
        if ((await digestUpTo(this.#reader, stored.run.run_id, Number.MAX_SAFE_INTEGER)) !== stored.run.digest)
          return 'broken';
        await this.#query(`SELECT pg_notify('${CHANNEL}', $1)`, [this.#hintOf(stored)]);
        return 'copied';
      });
    } catch (error) {
      // The id of one of its questions is already used.
      if ((error as { code?: unknown }).code === UNIQUE_VIOLATION) return 'conflict';
      // The run cannot be read.
      if (error instanceof DamagedDataError) return 'broken';
      throw error;
    }
  }

  // Deliveries of deleted runs. Their import is recorded, so that a repeated import does not send them again after they
  // have arrived.
  async importStrays(deliveries: readonly DeliveryRow[]): Promise<void> {
    for (const delivery of deliveries) {
      await this.#transact(async () => {
        const [isNew] = await this.#query(
          `INSERT INTO parley.meta (key, value) VALUES ($1, '') ON CONFLICT DO NOTHING RETURNING key`,
          [`imported ${delivery.delivery_id}`],
        );
        if (isNew) await this.#insert(DELIVERY, [delivery]);
        return 'copied';
      });
    }
  }

  // The counts of runs that were deleted in the data directory. Counts of an earlier import are recorded and not added
  // again.
  async importDeletedTurns(counts: readonly TurnCount[], { site, place }: Site): Promise<void> {
    const key = `imported deleted turns of ${site ?? place}`;
    await this.#transact(async () => {
      // Also locks the record against a concurrent import.
      await this.#query(
        `INSERT INTO parley.meta (key, value) VALUES ($1, '{}') ON CONFLICT (key) DO UPDATE SET value = meta.value`,
        [key],
      );
      const [note] = await this.#query<{ value: string }>('SELECT value FROM parley.meta WHERE key = $1', [key]);
      const before = readStoredJson(note?.value ?? '{}', `parley.meta of ${key}`) as Readonly<Record<string, number>>;
      const added = counts
        .map((each) => ({ ...each, count: each.count - (before[nameOf(each)] ?? 0) }))
        .filter(({ count }) => count > 0);
      await this.#insert(TOTAL, added);
      const after = { ...before, ...Object.fromEntries(counts.map((each) => [nameOf(each), each.count])) };
      await this.#query('UPDATE parley.meta SET value = $2 WHERE key = $1', [key, JSON.stringify(after)]);
      return 'copied';
    });
  }

  // Null: neither the run nor its request exists here.
  async #compare({ run }: StoredRun): Promise<'known' | 'conflict' | null> {
    const requestId = toText(run.request_id);
    const rows = await this.#query<StoredIds>(
      'SELECT run_id, request_id, request_digest, rasp_seq, digest FROM parley.runs WHERE run_id = $1 OR ' +
        'request_id = $2',
      [run.run_id, requestId],
    );
    const [here] = rows;
    if (here === undefined) return null;
    if (here.run_id !== run.run_id || here.request_id !== requestId || here.request_digest !== run.request_digest)
      return 'conflict';
    if (here.digest === run.digest) return 'known';
    // The run was copied earlier and has continued here since.
    return here.rasp_seq > run.rasp_seq && (await digestUpTo(this.#reader, run.run_id, run.rasp_seq)) === run.digest
      ? 'known'
      : 'conflict';
  }

  async #insertRun({ run, runtime, interactions, turns, deliveries }: StoredRun, { site, place }: Site): Promise<void> {
    const { run_id } = run;
    const spec = readStoredJson(run.spec_json) as RunSpec;
    await this.#insert(RUN, [{ ...run, spec, site, place }]);
    // A run that was deleted here is imported again, so its files must remain.
    await this.#query('DELETE FROM parley.leftovers WHERE run_id = $1', [run_id]);
    if (runtime) await this.#insert(RUNTIME, [{ ...runtime, request_id: run.request_id }]);
    const labels = Object.entries(spec.labels).map(([key, value]) => ({ run_id, pair: pairKey(key, value) }));
    await this.#insert(LABEL, labels);
    await this.#insert(
      INTERACTION,
      interactions.map((row) => ({ ...row, engine: run.engine })),
    );
    await this.#insert(TURN, turns);
    await this.#insert(DELIVERY, deliveries);
  }

  async #insertSegments(segments: Iterable<SegmentRow>): Promise<void> {
    let batch: SegmentRow[] = [];
    let bytes = 0;
    for (const segment of segments) {
      batch.push(segment);
      bytes += segment.body.length;
      if (bytes < BATCH_BYTES && batch.length < BATCH_ROWS) continue;
      await this.#insert(SEGMENT, batch);
      batch = [];
      bytes = 0;
    }
    await this.#insert(SEGMENT, batch);
  }

  // Notifies servers that are already running.
  #hintOf({ run, interactions }: StoredRun): string {
    return writeHint(this.#instance, {
      run_id: run.run_id,
      status: run.status,
      asked: interactions.find(({ state }) => state === 'pending')?.interaction_id,
    });
  }

  // Committed only if the run was copied.
  async #transact(work: () => Promise<ImportOutcome>): Promise<ImportOutcome> {
    await this.#query('BEGIN ISOLATION LEVEL READ COMMITTED');
    try {
      const outcome = await work();
      await this.#query(outcome === 'copied' ? 'COMMIT' : 'ROLLBACK');
      return outcome;
    } catch (error) {
      // A broken connection has already rolled back.
      await this.#client.query('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async #insert<R extends object>(table: Table<R>, rows: readonly R[]): Promise<void> {
    for (const { text, values } of insertStatements(table, rows)) await this.#query(text, values);
  }

  async #query<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    try {
      return (await this.#client.query<R>(text, [...values])).rows;
    } catch (error) {
      throw isLost(error) || isRefusedNow(error) ? describeLoss(this.#db.place, error) : error;
    }
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
    await this.#db.close();
  }
}

// The columns that are copied of each table. Texts that are compared are encoded as this store encodes them.
interface ImportedRun extends Site {
  readonly request_id: string;
  readonly spec: RunSpec;
  readonly crashes: number;
}

const REQUEST_ID = ['text', (row: { readonly request_id: string }) => toText(row.request_id)] as const;
const RUN: Table<ImportedRun> = {
  name: 'runs',
  columns: {
    run_id: 'text',
    request_id: REQUEST_ID,
    request_digest: 'text',
    engine: 'text',
    spec_json: 'text',
    cwd: ['text', ({ spec }) => toText(spec.cwd)],
    home: ['text', ({ spec }) => orNull(spec.home)],
    continues: ['boolean', ({ spec }) => spec.continue_from !== undefined],
    status: 'text',
    attempt_number: 'integer',
    epoch: 'bigint',
    site: 'text',
    place: 'text',
    error_json: 'text',
    result_json: 'text',
    cancel_requested_json: 'text',
    waited_ms: 'bigint',
    created_at: 'bigint',
    updated_at: 'bigint',
    queued_at: 'bigint',
    rasp_seq: 'bigint',
    fcmp_seq: 'bigint',
    ts: 'bigint',
    digest: 'text',
    last_commit: ['uuid', () => randomUUID()],
    crashed_by: ['text[]', ({ crashes }) => Array.from({ length: crashes }, () => 'before the import')],
  },
};
const RUNTIME: Table<RuntimeRow & { readonly request_id: string }> = {
  name: 'request_interactive_runtime',
  columns: {
    request_id: REQUEST_ID,
    effective_session_timeout_sec: 'double precision',
    session_handle_json: 'text',
    updated_at: 'text',
  },
};
const LABEL: Table<{ readonly run_id: string; readonly pair: string }> = {
  name: 'run_labels',
  columns: { run_id: 'text', pair: 'text' },
};
const INTERACTION: Table<InteractionRow & { readonly engine: string }> = {
  name: 'interactions',
  columns: {
    interaction_id: 'text',
    run_id: 'text',
    attempt_number: 'integer',
    question_json: 'text',
    state: 'text',
    asked_at: 'bigint',
    due_at: 'bigint',
    decides: ['boolean', ({ decides }) => Boolean(decides)],
    engine: 'text',
    idempotency_key: [
      'text',
      ({ resolution_json: json }) =>
        json === null ? null : orNull((readStoredJson(json) as Resolution).idempotency_key),
    ],
    resolution_json: 'text',
  },
};
const TURN: Table<TurnRow> = {
  name: 'turns',
  columns: {
    run_id: 'text',
    attempt_number: 'integer',
    engine: 'text',
    profile: 'text',
    units: 'bigint',
    parsed: 'bigint',
    fallbacks: 'bigint',
    warnings_json: 'text',
    completion: 'text',
    reason_code: 'text',
  },
};
const DELIVERY: Table<DeliveryRow> = {
  name: 'deliveries',
  // Skips a delivery that was copied before its run was deleted here.
  onConflict: 'ON CONFLICT DO NOTHING',
  columns: {
    delivery_id: 'text',
    hook: ['text', ({ hook }) => toText(hook)],
    type: 'text',
    payload_json: 'text',
    run_id: 'text',
    rasp_seq: 'bigint',
    digest: 'text',
    created_at: 'bigint',
    state: 'text',
    tries: 'integer',
    next_at: 'bigint',
    error: ['text', ({ error }) => orNull(error)],
  },
};
const nameOf = ({ engine, profile, measure }: TurnCount): string => JSON.stringify([engine, profile, measure]);
const TOTAL: Table<TurnCount> = {
  name: 'totals',
  columns: { subject: ['text', () => 'turns'], engine: 'text', profile: 'text', measure: 'text', count: 'bigint' },
};
// Segments of a data directory have the epoch 0, because it has no hosts.
const SEGMENT: Table<SegmentRow> = {
  name: 'segments',
  columns: {
    run_id: 'text',
    protocol: 'text',
    epoch: ['bigint', () => 0],
    seq_from: 'bigint',
    seq_to: 'bigint',
    ts_from: 'bigint',
    ts_to: 'bigint',
    body: ['bytea', ({ body }) => Buffer.from(body.buffer, body.byteOffset, body.length)],
  },
};

function orNull(text: string | null): string | null {
  return text === null ? null : toText(text);
}
