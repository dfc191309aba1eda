// The store in one SQLite file. Reads are synchronous; writes of one event-loop tick are committed together.
import type { EngineSessionHandle } from '../../run/session-handle.js';
import type { RunState } from '../../run/statechart.js';
import type { Message } from '../../kernel/message.js';
import { invariant } from '../../kernel/invariant.js';
import {
  EMPTY_JOURNAL,
  type AppendOutcome,
  type CommitListener,
  type Committed,
  type CreateOutcome,
  type DeleteOutcome,
  type DeleteRunOptions,
  type Delivery,
  type DeliveryOutcome,
  type EndedFilter,
  type EndedRun,
  type InteractionRecord,
  type JournalHeads,
  type Lines,
  type NewRun,
  type PendingFilter,
  type ProfileTotals,
  type Protocol,
  type ReadRange,
  type RunAppend,
  type RunFilter,
  type RunRecord,
  type SegmentRange,
  type Store,
} from '../store.js';
import { changesRows, rowsOf } from '../row-changes.js';
import { prepareAppend, sizeOf, type AppendJournal } from './append-journal.js';
import { countDeliveries, insertDelivery, nextDelivery, nextDeliveryAt, finishDelivery } from './deliveries.js';
import {
  listByPrefix,
  listByTail,
  listEnded,
  listPending,
  listQueued,
  listRunIds,
  nextDecision,
  selectRunRows,
} from './list-rows.js';
import { SqliteSummaries } from './list-summaries.js';
import type { SalvagedRun } from '../salvage.js';
import { readState, toRunCounts, type WrongTotal } from '../totals.js';
import type { Database, Statement } from './open-database.js';
import {
  listSegments,
  prepareRead,
  prepareReadLines,
  readSegments,
  recomputeDigest,
  type JournalSource,
  type ReadJournal,
  type ReadLines,
} from './read-journal.js';
import { toHandle, toRun, type RunRow } from '../rows.js';
import { KEY_OF_ANSWER, NEWEST_FIRST, listInteractions, loadInteraction } from './read-interactions.js';
import { salvageRun } from './salvage-run.js';
import { insertTurn, sumTurns } from './turn-counts.js';
import { compareTotals, countPending, readStates, recountTotals } from './totals.js';
import { GroupWriter, isSmall, MERGED_AT_ONCE, type SmallAppend } from './recent/group-writer.js';
import { GroupReader, loadGroups, type LoadedGroups } from './recent/load-groups.js';
import { withRecentHeads, type RecentView } from './recent/recent-flushes.js';
import type { CheckFiles } from './commits/watch-files.js';
import { Writes } from './commits/writes.js';
import { findAtWork, findAtWorkIn, findInHome, isKnown } from './find-runs.js';
import { insertRun } from './create-run.js';
import { deleteRun } from './delete-run.js';
import {
  hasStarting,
  insertInteraction,
  releaseStarting,
  resolveInteraction,
  setColumns,
  setHandle,
} from './change-rows.js';

type StateRow = Pick<
  RunRow,
  'run_id' | 'request_id' | 'status' | 'epoch' | 'cancel_requested_json' | keyof JournalHeads
> & { readonly engine: string };

export interface StoreOptions {
  readonly checkFiles?: CheckFiles | undefined;
}

export class SqliteStore implements Store {
  readonly isComplete = true;
  readonly summaries: SqliteSummaries;
  // All writes of this connection.
  readonly writes: Writes;
  readonly #db: Database;
  readonly #append: AppendJournal;
  readonly #read: ReadJournal;
  readonly #readLines: ReadLines;
  // The small flushes that are not in segments yet. Only a writer has #groups.
  readonly #recent: RecentView;
  readonly #source: JournalSource;
  readonly #groups: GroupWriter | null;
  readonly #selectState: Statement;
  readonly #updateHeads: Statement;
  readonly #listeners = new Set<CommitListener>();
  #isMerging = false;

  readonly checkUsable: CheckFiles;

  // The database is open and migrated. Only the process that writes to it has loaded the groups; it alone may call
  // methods that write. `checkFiles` runs before anything is written and before it is acknowledged.
  constructor(db: Database, groups: LoadedGroups | null, { checkFiles = () => {} }: StoreOptions = {}) {
    this.checkUsable = checkFiles;
    this.#db = db;
    this.#groups = groups && new GroupWriter(db, groups);
    this.#recent = this.#groups ?? new GroupReader(db);
    this.#source = { db, recent: this.#recent };
    this.#append = prepareAppend(db);
    this.#read = prepareRead(db, this.#recent);
    this.#readLines = prepareReadLines(db, this.#recent);
    this.writes = new Writes(db, { checkFiles, participant: this.#groups ?? undefined });
    this.summaries = new SqliteSummaries(db, this.#recent);
    this.#selectState = db.prepare(
      'SELECT run_id, request_id, engine, status, epoch, cancel_requested_json, rasp_seq, fcmp_seq, ts, digest ' +
        'FROM runs WHERE run_id = ?',
    );
    this.#updateHeads = db.prepare(
      'UPDATE runs SET rasp_seq = ?, fcmp_seq = ?, ts = ?, digest = ?, updated_at = ? WHERE run_id = ?',
    );
  }

  createRun(run: NewRun): Promise<CreateOutcome> {
    return this.writes.add(
      (): CreateOutcome => {
        const known = this.#db.prepare('SELECT * FROM runs WHERE request_id = ?').get(run.request_id) as
          | RunRow
          | undefined;
        if (known)
          return {
            created: false,
            reason: 'known',
            run: this.#toRun(known),
            sameRequest: known.request_digest === run.request_digest,
          };
        const queued = readState(readStates(this.#db, 'runs'), 'queued');
        if (queued >= run.queue_limit) return { created: false, reason: 'queue_full', queued };
        const by = run.handle && findAtWorkIn(this.#db, run.handle.home);
        if (by) return { created: false, reason: 'session_in_use', by };
        this.#insertRun(run);
        return { created: true, run: this.#loadRun(run.run_id) as RunRecord };
      },
      ({ created }, ms) =>
        created && this.#tell({ run_id: run.run_id, journal: run.journal, status: 'queued', origin: 'here', ms }),
      { bytes: sizeOf(run.journal) },
    );
  }

  #insertRun(run: NewRun): void {
    insertRun(this.#db, run);
    this.#setHeads(run.run_id, this.#append(run.run_id, EMPTY_JOURNAL, run.journal), run.created_at);
  }

  append({
    run_id: runId,
    expect,
    now,
    epoch,
    lines,
    before,
    after,
    create,
    deliveries = [],
  }: RunAppend): Promise<AppendOutcome> {
    const rows = rowsOf(before, after);
    if (lines && isSmall(lines) && epoch === undefined && !create && deliveries.length === 0 && !changesRows(rows))
      return this.#appendSmall({ run_id: runId, expect, now, status: before.status, lines }, rows?.reached);
    let isCreated = false;
    return this.writes.add(
      (): AppendOutcome => {
        this.#groups?.merge(runId);
        const run = this.#selectState.get(runId) as StateRow | undefined;
        if (!run) return { committed: false, reason: 'unknown_run' };
        if (run.epoch !== expect.epoch) return { committed: false, reason: 'epoch' };
        if (run.status !== before.status) return { committed: false, reason: 'status' };
        if (run.rasp_seq !== expect.rasp_seq) return { committed: false, reason: 'seq' };
        if (rows?.resolved && !resolveInteraction(this.#db, runId, rows.resolved))
          return { committed: false, reason: 'interaction' };
        if (rows || epoch !== undefined) setColumns(this.#db, runId, { run: rows?.run ?? {}, epoch, now });
        if (rows?.handle) setHandle(this.#db, run.request_id, { handle: rows.handle, now });
        if (rows?.asked) insertInteraction(this.#db, runId, rows.asked);
        if (rows?.turn) insertTurn(this.#db, run, rows.turn);
        const head: JournalHeads = { rasp_seq: run.rasp_seq, fcmp_seq: run.fcmp_seq, ts: run.ts, digest: run.digest };
        const heads = lines ? this.#append(runId, head, lines) : head;
        this.#setHeads(runId, heads, now);
        for (const delivery of deliveries) insertDelivery(this.#db, delivery, { runId, heads, now });
        isCreated = create !== undefined && run.cancel_requested_json === null && !isKnown(this.#db, create.request_id);
        if (create && isCreated) this.#insertRun(create);
        return { committed: true, heads };
      },
      ({ committed }, ms) => {
        if (!committed) return;
        this.#tell({
          run_id: runId,
          journal: lines,
          status: rows?.reached,
          asked: rows?.asked?.interaction_id,
          resolved: rows?.resolved?.interaction_id,
          origin: 'here',
          ms,
        });
        if (create && isCreated)
          this.#tell({ run_id: create.run_id, journal: create.journal, status: 'queued', origin: 'here', ms });
      },
      { bytes: sizeOf(lines) + sizeOf(create?.journal) + (this.#groups?.bytesOf(runId) ?? 0) },
    );
  }

  #appendSmall(small: SmallAppend, reached: RunState | undefined): Promise<AppendOutcome> {
    const { run_id: runId, lines } = small;
    return this.writes.add(
      (): AppendOutcome => this.#writer().append(small),
      ({ committed }, ms) => {
        if (committed) this.#tell({ run_id: runId, journal: lines, status: reached, origin: 'here', ms });
        this.#mergeSoon();
      },
      { bytes: sizeOf(lines), urgent: true },
    );
  }

  #writer(): GroupWriter {
    invariant(this.#groups, 'only the writer of a data directory stores events');
    return this.#groups;
  }

  // Merges after the flush was acknowledged, so that its reader does not wait.
  #mergeSoon(): void {
    if (this.#isMerging || !this.#writer().isFull) return;
    this.#isMerging = true;
    const options = { bytes: MERGED_AT_ONCE, alone: true };
    const merging = this.writes.add(() => this.#writer().mergeOldest(), undefined, options);
    // After a failure, the next flush tries again. Nothing is lost: the flushes stay in their groups.
    void merging
      .catch(() => {})
      .finally(() => {
        this.#isMerging = false;
      });
  }

  findGroupDamage(): Message[] {
    return [...loadGroups(this.#db).damaged.values()];
  }

  // Merges all recent flushes.
  async mergeAll(): Promise<void> {
    await this.writes.add(() => this.#writer().mergeAll());
  }

  onCommitted(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // No other process writes to this file, so no commit is ever missed.
  onMissed(): () => void {
    return () => {};
  }

  #tell(commit: Committed): void {
    for (const listener of this.#listeners) {
      try {
        listener(commit);
      } catch {
        // The commit is done, whatever the listener does.
      }
    }
  }

  #setHeads(runId: string, heads: JournalHeads, now: number): void {
    this.#updateHeads.run(heads.rasp_seq, heads.fcmp_seq, heads.ts, heads.digest, now, runId);
  }

  deleteRun(runId: string, options: DeleteRunOptions = {}): Promise<DeleteOutcome> {
    return this.writes.add(
      (): DeleteOutcome => {
        this.#groups?.merge(runId);
        return deleteRun(this.#db, runId, options);
      },
      (outcome, ms) => outcome === 'deleted' && this.#tell({ run_id: runId, deleted: true, origin: 'here', ms }),
    );
  }

  async loadRun(runId: string): Promise<RunRecord | null> {
    return this.#loadRun(runId);
  }

  salvageRun(runId: string): Promise<SalvagedRun | null> {
    this.#recent.refresh();
    return salvageRun(this.#db, this, { runId, newest: this.#recent.newestOf(runId) });
  }

  async findInHome(home: string, except: string): Promise<string | null> {
    return findInHome(this.#db, home, except);
  }

  async findAtWork(cwd: string): Promise<string | null> {
    return findAtWork(this.#db, cwd);
  }

  async loadRequest(requestId: string): Promise<{ run: RunRecord; digest: string } | null> {
    this.#recent.refresh();
    const row = this.#db.prepare('SELECT * FROM runs WHERE request_id = ?').get(requestId) as RunRow | undefined;
    return row ? { run: this.#toRun(row), digest: row.request_digest } : null;
  }

  #loadRun(runId: string): RunRecord | null {
    this.#recent.refresh();
    const row = this.#db.prepare('SELECT * FROM runs WHERE run_id = ?').get(runId) as RunRow | undefined;
    return row ? this.#toRun(row) : null;
  }

  #toRun(row: RunRow): RunRecord {
    return toRun(withRecentHeads(row, this.#recent.newestOf(row.run_id)));
  }

  async listRuns(filter: RunFilter): Promise<RunRecord[]> {
    this.#recent.refresh();
    return selectRunRows(this.#db, filter).map((row) => this.#toRun(row));
  }

  async listRunIds(filter: RunFilter): Promise<string[]> {
    return listRunIds(this.#db, filter);
  }

  async listEnded(filter: EndedFilter): Promise<EndedRun[]> {
    return listEnded(this.#db, filter);
  }

  async listByTail(tails: readonly string[]): Promise<string[]> {
    return listByTail(this.#db, tails);
  }

  async listByPrefix(prefix: string, limit: number): Promise<string[]> {
    return listByPrefix(this.#db, prefix, limit);
  }

  async countRuns(): Promise<Record<RunState, number>> {
    return toRunCounts(readStates(this.#db, 'runs'));
  }

  async countPending(now: number): Promise<{ pending: number; overdue: number }> {
    return countPending(this.#db, now);
  }

  async loadHandle(requestId: string): Promise<EngineSessionHandle | null> {
    const row = this.#db
      .prepare('SELECT session_handle_json FROM request_interactive_runtime WHERE request_id = ?')
      .get(requestId) as { session_handle_json: string | null } | undefined;
    return toHandle(row?.session_handle_json, requestId);
  }

  async loadInteraction(interactionId: string): Promise<InteractionRecord | null> {
    return loadInteraction(this.#db, 'interaction_id = ?', interactionId);
  }

  async loadInteractionByKey(runId: string, idempotencyKey: string): Promise<InteractionRecord | null> {
    return loadInteraction(this.#db, `run_id = ? AND ${KEY_OF_ANSWER} = ?`, runId, idempotencyKey);
  }

  async loadPendingInteraction(runId: string): Promise<InteractionRecord | null> {
    return loadInteraction(this.#db, `run_id = ? AND state = 'pending'`, runId);
  }

  async loadLatestInteraction(runId: string): Promise<InteractionRecord | null> {
    return loadInteraction(this.#db, `run_id = ? ${NEWEST_FIRST} LIMIT 1`, runId);
  }

  async listInteractions(runId: string): Promise<InteractionRecord[]> {
    return listInteractions(this.#db, runId);
  }

  async listPending(filter: PendingFilter): Promise<InteractionRecord[]> {
    return listPending(this.#db, filter);
  }

  async nextDecision(except: readonly string[] = []): Promise<InteractionRecord | null> {
    return nextDecision(this.#db, except);
  }

  async listQueued(limit: number): Promise<string[]> {
    return listQueued(this.#db, limit);
  }

  markStarting(runId: string): Promise<void> {
    return this.writes.add(
      () => void this.#db.prepare(`UPDATE runs SET at_work = 1 WHERE run_id = ? AND status = 'queued'`).run(runId),
    );
  }

  async releaseStarts(): Promise<void> {
    if (hasStarting(this.#db)) await this.writes.add(() => releaseStarting(this.#db));
  }

  async countCrashes(): Promise<void> {
    const marked = this.#db.prepare('SELECT 1 FROM runs WHERE at_work = 1 LIMIT 1').get();
    if (marked)
      await this.writes.add(() =>
        this.#db.exec('UPDATE runs SET crashes = crashes + 1, at_work = 0 WHERE at_work = 1'),
      );
  }

  async readJournal(runId: string, protocol: Protocol, range: ReadRange): Promise<string[]> {
    return this.#read(runId, protocol, range);
  }

  async readLines(runId: string, protocol: Protocol, afterSeq: number, maxBytes: number): Promise<Lines | null> {
    return this.#readLines(runId, protocol, afterSeq, maxBytes);
  }

  async listSegments(runId: string, protocol: Protocol): Promise<SegmentRange[]> {
    return listSegments(this.#source, runId, protocol);
  }

  async readSegments(...[runId, protocol, afterSeq, maxBytes]: Parameters<Store['readSegments']>) {
    return readSegments(this.#source, runId, protocol, { afterSeq, maxBytes });
  }

  async recomputeDigest(runId: string): Promise<string> {
    return recomputeDigest(this.#source, runId);
  }

  async nextDelivery(now: number, except: readonly string[] = []): Promise<Delivery | null> {
    return nextDelivery(this.#db, now, except);
  }

  async nextDeliveryAt(except: readonly string[] = []): Promise<number | null> {
    return nextDeliveryAt(this.#db, except);
  }

  finishDelivery(deliveryId: string, outcome: DeliveryOutcome): Promise<boolean> {
    return this.writes.add(() => finishDelivery(this.#db, deliveryId, outcome));
  }

  async countDeliveries(): Promise<{ pending: number; given_up: number }> {
    return countDeliveries(this.#db);
  }

  async sumTurns(runId?: string): Promise<ProfileTotals[]> {
    return sumTurns(this.#db, runId);
  }

  async findWrongTotals(): Promise<WrongTotal[]> {
    return compareTotals(this.#db);
  }

  recountTotals(): Promise<void> {
    return this.writes.add(() => recountTotals(this.#db));
  }

  async close(): Promise<void> {
    this.writes.drain();
    this.#db.close();
  }
}
