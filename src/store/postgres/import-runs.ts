// Takes runs over from another store as their rows stand, each in a transaction of its own. One that is here already is
// passed over, one that differs is left as it is; what does not fit its digest when it is read back is not kept.
import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { DamagedDataError, readStoredJson } from '../../kernel/stored-json.js';
import type { DeletedCount } from '../add-up-turns.js';
import type { InteractionRow } from '../rows.js';
import type { Resolution, RunSpec } from '../store.js';
import type { DeliveryRow, RuntimeRow, SegmentRow, StoredRun, TurnRow } from '../stored-run.js';
import { digestUpTo } from './commit-run.js';
import { CHANNEL } from './connection/compose.js';
import { LOCK_RUNS } from './create-run.js';
import { Database, type Reader } from './connection/database.js';
import { writeHint } from './hosts/hints.js';
import { insertStatements, type Columns } from './insert-rows.js';
import { describeLoss, isLost, isRefusedNow } from './connection/lost-connection.js';
import { checkMigrated } from './connection/migrate.js';
import type { Site } from './hosts/site.js';
import { pairKey, toText } from './connection/text.js';
import { ADD_DELETED } from './turn-counts.js';
import type { AuditTrace } from '../audit.js';
import { addTokenRow, type TokenRow } from './access/token-rows.js';

// conflict: the id or the request id is that of a run with another content. broken: its journal does not fit its
// digest.
export type ImportOutcome = 'copied' | 'known' | 'conflict' | 'broken';

interface Found {
  readonly run_id: string;
  readonly request_id: string;
  readonly request_digest: string;
  readonly rasp_seq: number;
  readonly digest: string;
}

const UNIQUE_VIOLATION = '23505';
// So much of a journal is sent at once.
const BATCH_BYTES = 1024 * 1024;
const BATCH_ROWS = 200;

export class RunImport {
  readonly #db: Database;
  // One of its own: what is sent may take longer than an answer in daily work.
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

  // One whose name is there is left alone.
  importToken(token: TokenRow, trace: AuditTrace): Promise<boolean> {
    const { name, person = name, role } = token;
    return addTokenRow(this.#db, token, {
      ...trace,
      type: 'token.added',
      body: { name, person, role, imported: true },
    });
  }

  // Where it is, as it may be shown.
  get name(): string {
    return this.#db.place.name;
  }

  async importRun(stored: StoredRun, segments: () => Iterable<SegmentRow>, site: Site): Promise<ImportOutcome> {
    const before = await this.#compare(stored);
    if (before !== null) return before;
    try {
      return await this.#transact(async () => {
        await this.#query(LOCK_RUNS.text);
        // It may have come while the lock was waited for.
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
      // One of its questions has an id that is taken.
      if ((error as { code?: unknown }).code === UNIQUE_VIOLATION) return 'conflict';
      // It cannot even be read.
      if (error instanceof DamagedDataError) return 'broken';
      throw error;
    }
  }

  // Of runs that are gone. That they came is noted: they are not to be sent again when they have arrived and this is
  // done once more.
  async importStrays(deliveries: readonly DeliveryRow[]): Promise<void> {
    for (const delivery of deliveries) {
      await this.#transact(async () => {
        const [isNew] = await this.#query(
          `INSERT INTO parley.meta (key, value) VALUES ($1, '') ON CONFLICT DO NOTHING RETURNING key`,
          [`imported ${delivery.delivery_id}`],
        );
        if (isNew) await this.#insertDeliveries([delivery]);
        return 'copied';
      });
    }
  }

  // The counts of runs that were deleted in the data directory. What came with an earlier import is noted and not added
  // again.
  async importDeletedTurns(counts: readonly DeletedCount[], { site, place }: Site): Promise<void> {
    const key = `imported deleted turns of ${site ?? place}`;
    await this.#transact(async () => {
      // Also locks the note against an import beside this one.
      await this.#query(
        `INSERT INTO parley.meta (key, value) VALUES ($1, '{}') ON CONFLICT (key) DO UPDATE SET value = meta.value`,
        [key],
      );
      const [note] = await this.#query<{ value: string }>('SELECT value FROM parley.meta WHERE key = $1', [key]);
      const before = readStoredJson(note?.value ?? '{}', `parley.meta of ${key}`) as Readonly<Record<string, number>>;
      const added = counts
        .map((each) => ({ ...each, count: each.count - (before[nameOf(each)] ?? 0) }))
        .filter(({ count }) => count > 0);
      await this.#insert('deleted_turns', DELETED, added, ADD_DELETED);
      const after = { ...before, ...Object.fromEntries(counts.map((each) => [nameOf(each), each.count])) };
      await this.#query('UPDATE parley.meta SET value = $2 WHERE key = $1', [key, JSON.stringify(after)]);
      return 'copied';
    });
  }

  // Null: neither the run nor its request is here.
  async #compare({ run }: StoredRun): Promise<'known' | 'conflict' | null> {
    const requestId = toText(run.request_id);
    const found = await this.#query<Found>(
      'SELECT run_id, request_id, request_digest, rasp_seq, digest FROM parley.runs WHERE run_id = $1 OR ' +
        'request_id = $2',
      [run.run_id, requestId],
    );
    const [here] = found;
    if (here === undefined) return null;
    if (here.run_id !== run.run_id || here.request_id !== requestId || here.request_digest !== run.request_digest)
      return 'conflict';
    if (here.digest === run.digest) return 'known';
    // It was copied earlier and has gone on here since.
    return here.rasp_seq > run.rasp_seq && (await digestUpTo(this.#reader, run.run_id, run.rasp_seq)) === run.digest
      ? 'known'
      : 'conflict';
  }

  async #insertRun({ run, runtime, interactions, turns, deliveries }: StoredRun, { site, place }: Site): Promise<void> {
    const { run_id } = run;
    const spec = readStoredJson(run.spec_json) as RunSpec;
    await this.#insert('runs', RUN, [{ ...run, spec, site, place }]);
    // It was deleted here, and has come back: so do its files.
    await this.#query('DELETE FROM parley.leftovers WHERE run_id = $1', [run_id]);
    if (runtime)
      await this.#insert('request_interactive_runtime', RUNTIME, [{ ...runtime, request_id: run.request_id }]);
    await this.#insert(
      'run_labels',
      LABEL,
      Object.entries(spec.labels).map(([key, value]) => ({ run_id, pair: pairKey(key, value) })),
    );
    await this.#insert('interactions', INTERACTION, interactions);
    await this.#insert('turns', TURN, turns);
    await this.#insertDeliveries(deliveries);
  }

  // One that is there already was copied before its run was deleted here.
  #insertDeliveries(deliveries: readonly DeliveryRow[]): Promise<void> {
    return this.#insert('deliveries', DELIVERY, deliveries, 'ON CONFLICT DO NOTHING');
  }

  async #insertSegments(segments: Iterable<SegmentRow>): Promise<void> {
    let batch: SegmentRow[] = [];
    let bytes = 0;
    for (const segment of segments) {
      batch.push(segment);
      bytes += segment.body.length;
      if (bytes < BATCH_BYTES && batch.length < BATCH_ROWS) continue;
      await this.#insert('segments', SEGMENT, batch);
      batch = [];
      bytes = 0;
    }
    await this.#insert('segments', SEGMENT, batch);
  }

  // For servers that are at work already.
  #hintOf({ run, interactions }: StoredRun): string {
    return writeHint(this.#instance, {
      run_id: run.run_id,
      status: run.status,
      asked: interactions.find(({ state }) => state === 'pending')?.interaction_id,
    });
  }

  // Kept only if it was copied.
  async #transact(work: () => Promise<ImportOutcome>): Promise<ImportOutcome> {
    await this.#query('BEGIN ISOLATION LEVEL READ COMMITTED');
    try {
      const outcome = await work();
      await this.#query(outcome === 'copied' ? 'COMMIT' : 'ROLLBACK');
      return outcome;
    } catch (error) {
      // A connection that is gone has taken it back by itself.
      await this.#client.query('ROLLBACK').catch(() => {});
      throw error;
    }
  }

  async #insert<R extends object>(
    table: string,
    columns: Columns<R>,
    rows: readonly R[],
    rest?: string,
  ): Promise<void> {
    for (const { text, values } of insertStatements(table, columns, rows, rest)) await this.#query(text, values);
  }

  async #query<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    try {
      return (await this.#client.query<R>(text, [...values])).rows;
    } catch (error) {
      throw isLost(error) || isRefusedNow(error) ? describeLoss(this.#db.place, error, false) : error;
    }
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => {});
    await this.#db.close();
  }
}

// What is copied of each table. Texts that are compared are written as this store writes them.
interface ImportedRun extends Site {
  readonly request_id: string;
  readonly spec: RunSpec;
  readonly crashes: number;
}

const REQUEST_ID = ['text', (row: { readonly request_id: string }) => toText(row.request_id)] as const;
const RUN: Columns<ImportedRun> = {
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
};
const RUNTIME: Columns<RuntimeRow & { readonly request_id: string }> = {
  request_id: REQUEST_ID,
  effective_session_timeout_sec: 'double precision',
  session_handle_json: 'text',
  updated_at: 'text',
};
const LABEL: Columns<{ readonly run_id: string; readonly pair: string }> = { run_id: 'text', pair: 'text' };
const INTERACTION: Columns<InteractionRow> = {
  interaction_id: 'text',
  run_id: 'text',
  attempt_number: 'integer',
  question_json: 'text',
  state: 'text',
  asked_at: 'bigint',
  due_at: 'bigint',
  decides: ['boolean', ({ decides }) => Boolean(decides)],
  idempotency_key: [
    'text',
    ({ resolution_json: json }) =>
      json === null ? null : orNull((readStoredJson(json) as Resolution).idempotency_key),
  ],
  resolution_json: 'text',
};
const TURN: Columns<TurnRow> = {
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
};
const DELIVERY: Columns<DeliveryRow> = {
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
};
const nameOf = ({ engine, profile, measure }: DeletedCount): string => JSON.stringify([engine, profile, measure]);
const DELETED: Columns<DeletedCount> = { engine: 'text', profile: 'text', measure: 'text', count: 'bigint' };
// Of the time before there were epochs of hosts.
const SEGMENT: Columns<SegmentRow> = {
  run_id: 'text',
  protocol: 'text',
  epoch: ['bigint', () => 0],
  seq_from: 'bigint',
  seq_to: 'bigint',
  ts_from: 'bigint',
  ts_to: 'bigint',
  body: ['bytea', ({ body }) => Buffer.from(body.buffer, body.byteOffset, body.length)],
};

function orNull(text: string | null): string | null {
  return text === null ? null : toText(text);
}
