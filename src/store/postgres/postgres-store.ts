// The store in a PostgreSQL database, which several hosts share. The store of a host may write running runs only while
// that host owns them and its lease is valid; a store without a host needs no lease.
import { randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../../kernel/clock.js';
import type { EngineSessionHandle } from '../../run/session-handle.js';
import type { RunState } from '../../run/statechart.js';
import { toHandle, type InteractionRow } from '../rows.js';
import { salvage, type SalvagedRun } from '../salvage.js';
import { rowsOf } from '../row-changes.js';
import type {
  AppendOutcome,
  CancelRequest,
  CommitListener,
  Committed,
  CreateOutcome,
  DeleteOutcome,
  DeleteRunOptions,
  Delivery,
  DeliveryOutcome,
  EndedFilter,
  EndedRun,
  InteractionRecord,
  Lines,
  NewRun,
  PendingFilter,
  ProfileTotals,
  Protocol,
  ReadRange,
  RunAppend,
  RunFilter,
  RunRecord,
  SegmentRange,
  Store,
} from '../store.js';
import { UNTRACED } from '../audit.js';
import { toRunCounts, type WrongTotal } from '../totals.js';
import { appendToRun, digestUpTo } from './append-run.js';
import { createRun, deleteRun } from './create-run.js';
import type { Database } from './connection/database.js';
import {
  claimDecisions,
  findNextDecision,
  nextDecision,
  postponeDecision,
  type NextDecision,
} from './hosts/decisions.js';
import { countDeliveries, nextDelivery, nextDeliveryAt, finishDelivery } from './deliveries.js';
import { CHECK_MS, HintListener, writeHint } from './hosts/hints.js';
import { countPending, findInteraction, listInteractions, listPending } from './interactions.js';
import { PostgresSummaries } from './list-summaries.js';
import { listSegments, readLines, readStoredSegments, readTexts } from './read-journal.js';
import {
  findAtWork,
  findInHome,
  listOwnedByDead,
  listByPrefix,
  listByTail,
  listEnded,
  listQueued,
  listRunIds,
  listRuns,
  loadForSalvage,
  loadRequest,
  loadRun,
} from './run-rows.js';
import { claimQueued, peekQueued, releaseClaims, requestCancel, type Claimant } from './hosts/claims.js';
import { NOWHERE, type Site } from './hosts/site.js';
import { toText } from './connection/text.js';
import { compareTotals, readStates, recountTotals } from './totals.js';
import { sumTurns } from './turn-counts.js';

export interface PostgresStoreOptions {
  readonly host: string | null;
  readonly site?: Site;
  // The id of the claimant of deliveries.
  readonly clock?: Clock;
  // Claims only runs that it has created or changed itself, while others are alive for the rest.
  readonly ownOnly?: boolean;
  // The interval at which the listening connection is checked.
  readonly checkMs?: number;
}

type Notification = Pick<Committed, 'run_id' | 'journal' | 'status' | 'asked' | 'decides_at' | 'resolved' | 'deleted'>;

export class PostgresStore implements Store {
  readonly isComplete = false;
  readonly summaries: PostgresSummaries;
  // For leases, which use the same connections.
  readonly database: Database;
  #host: string | null;
  readonly #site: Site;
  readonly #clock: Clock;
  readonly #own: Set<string> | null;
  readonly #instance = randomUUID();
  readonly #listener: HintListener;
  readonly #listeners = new Set<CommitListener>();
  readonly #missed = new Set<() => void>();
  readonly #accessChanged = new Set<() => void>();

  // The database must be migrated. Commits of other hosts are reported only after `listen`.
  constructor(
    database: Database,
    { host, site = NOWHERE, clock = systemClock, ownOnly = false, checkMs = CHECK_MS }: PostgresStoreOptions,
  ) {
    this.database = database;
    this.summaries = new PostgresSummaries(database);
    this.#host = host;
    this.#site = site;
    this.#clock = clock;
    this.#own = ownOnly ? new Set() : null;
    this.#listener = new HintListener(database, {
      instance: this.#instance,
      checkMs,
      onHint: (commit) => this.#tell(commit),
      onMissed: () => {
        for (const listener of this.#missed) ignoreErrors(listener);
      },
      onAccess: () => {
        for (const listener of this.#accessChanged) ignoreErrors(listener);
      },
    });
  }

  // Switches to another host: runs of the previous one belong to somebody else.
  become(host: string): void {
    this.#host = host;
  }

  listen(): Promise<void> {
    return this.#listener.open();
  }

  async createRun(run: NewRun): Promise<CreateOutcome> {
    return this.#telling(
      { run_id: run.run_id, journal: run.journal, status: 'queued' },
      (hint) => createRun(this.database, run, { site: this.#site, hint }),
      ({ created }) => created,
    );
  }

  async append(append: RunAppend): Promise<AppendOutcome> {
    const { run_id, lines, before, after, create } = append;
    const rows = rowsOf(before, after);
    const notification: Notification = {
      run_id,
      journal: lines,
      status: rows?.reached,
      asked: rows?.asked?.interaction_id,
      decides_at: rows?.asked ? (rows.asked.decides ? rows.asked.due_at : null) : undefined,
      resolved: rows?.resolved?.interaction_id,
    };
    const created = create && { run_id: create.run_id, journal: create.journal, status: 'queued' as const };
    const writer = {
      host: this.#host,
      site: this.#site,
      createHint: created ? writeHint(this.#instance, created) : '',
    };
    const { created: isCreated, ...outcome } = await this.#telling(
      notification,
      (hint) => appendToRun(this.database, writer, append, hint),
      ({ committed }) => committed,
    );
    if (created && isCreated) this.#tell({ ...created, origin: 'here', ms: 0 });
    return outcome;
  }

  // Leaves a cancel request for the host that owns the run. That host appends the event.
  async requestCancel(runId: string, request: CancelRequest): Promise<void> {
    await this.#telling(
      { run_id: runId },
      (hint) => requestCancel(this.database, { runId, request, hint }),
      (isNew) => isNew,
    );
  }

  async deleteRun(runId: string, { damaged = false, trace = UNTRACED }: DeleteRunOptions = {}): Promise<DeleteOutcome> {
    return this.#telling(
      { run_id: runId, deleted: true },
      (hint) => deleteRun(this.database, { runId, hint, damaged, trace }),
      (outcome) => outcome === 'deleted',
    );
  }

  // Other hosts get the hint; our own listeners are called here.
  async #telling<T>(
    notification: Notification,
    work: (hint: string) => Promise<T>,
    isDone: (outcome: T) => boolean,
  ): Promise<T> {
    const startedAt = performance.now();
    const outcome = await work(writeHint(this.#instance, notification));
    if (isDone(outcome)) this.#own?.add(notification.run_id);
    if (isDone(outcome)) this.#tell({ ...notification, origin: 'here', ms: performance.now() - startedAt });
    return outcome;
  }

  onCommitted(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  follow(runId: string): () => void {
    return this.#listener.follow(runId);
  }

  onMissed(listener: () => void): () => void {
    this.#missed.add(listener);
    return () => this.#missed.delete(listener);
  }

  // Called when a host or a command has ended sessions or changed tokens, and when a notification may have been missed.
  onAccessChanged(listener: () => void): () => void {
    this.#accessChanged.add(listener);
    return () => this.#accessChanged.delete(listener);
  }

  #tell(commit: Committed): void {
    for (const listener of this.#listeners) ignoreErrors(() => listener(commit));
  }

  async loadRun(runId: string): Promise<RunRecord | null> {
    return loadRun(this.database, runId);
  }

  async salvageRun(runId: string): Promise<SalvagedRun | null> {
    const salvaged = await loadForSalvage(this.database, runId);
    return (
      salvaged &&
      salvage({
        ...salvaged,
        loadInteraction: (id) => this.loadInteraction(id),
        loadHandle: (id) => this.loadHandle(id),
      })
    );
  }

  async findInHome(home: string, except: string): Promise<string | null> {
    return findInHome(this.database, home, except);
  }

  async findAtWork(cwd: string): Promise<string | null> {
    return findAtWork(this.database, cwd);
  }

  async loadRequest(requestId: string): Promise<{ run: RunRecord; digest: string } | null> {
    return loadRequest(this.database, requestId);
  }

  async listRuns(filter: RunFilter): Promise<RunRecord[]> {
    return listRuns(this.database, filter);
  }

  async listRunIds(filter: RunFilter): Promise<string[]> {
    return listRunIds(this.database, filter);
  }

  async listEnded(filter: EndedFilter): Promise<EndedRun[]> {
    return listEnded(this.database, filter);
  }

  async listByTail(tails: readonly string[]): Promise<string[]> {
    return listByTail(this.database, tails);
  }

  async listByPrefix(prefix: string, limit: number): Promise<string[]> {
    return listByPrefix(this.database, prefix, limit);
  }

  // Runs of dead hosts: nobody is running them.
  async listOwnedByDead(limit: number): Promise<string[]> {
    return listOwnedByDead(this.database, limit);
  }

  async listQueued(limit: number): Promise<string[]> {
    return listQueued(this.database, limit);
  }

  claimQueued(limit: number, except: readonly string[]): Promise<string[]> {
    return claimQueued(this.database, this.#asClaimant(), { limit, except });
  }

  peekQueued(): Promise<boolean> {
    return peekQueued(this.database, this.#asClaimant());
  }

  #asClaimant(): Claimant {
    return { host: this.#host, site: this.#site, only: this.#own && [...this.#own] };
  }

  // The claim itself is already stored.
  async markStarting(): Promise<void> {}

  async releaseStarts(): Promise<void> {
    if (this.#host !== null) await releaseClaims(this.database, this.#host);
  }

  // Each host counts a crash when it takes a run from a dead host.
  async countCrashes(): Promise<void> {}

  async countRuns(): Promise<Record<RunState, number>> {
    return toRunCounts(await readStates(this.database, 'runs'));
  }

  async loadHandle(requestId: string): Promise<EngineSessionHandle | null> {
    const [row] = await this.database.read<{ session_handle_json: string | null }>({
      name: 'load-handle',
      text: 'SELECT session_handle_json FROM parley.request_interactive_runtime WHERE request_id = $1',
      values: [toText(requestId)],
    });
    return toHandle(row?.session_handle_json, requestId);
  }

  async loadInteraction(interactionId: string): Promise<InteractionRecord | null> {
    return findInteraction(this.database, 'by-id', interactionId);
  }

  async loadInteractionByKey(runId: string, idempotencyKey: string): Promise<InteractionRecord | null> {
    return findInteraction(this.database, 'by-key', runId, toText(idempotencyKey));
  }

  async loadPendingInteraction(runId: string): Promise<InteractionRecord | null> {
    return findInteraction(this.database, 'pending', runId);
  }

  async loadLatestInteraction(runId: string): Promise<InteractionRecord | null> {
    return findInteraction(this.database, 'latest', runId);
  }

  async listInteractions(runId: string): Promise<InteractionRecord[]> {
    return listInteractions(this.database, runId);
  }

  async listPending(filter: PendingFilter): Promise<InteractionRecord[]> {
    return listPending(this.database, filter);
  }

  async nextDecision(except: readonly string[] = []): Promise<InteractionRecord | null> {
    return nextDecision(this.database, except);
  }

  // Claims expired questions for this host, as raw rows: a damaged one must not hide the others.
  async claimDecisions(limit: number): Promise<InteractionRow[]> {
    return claimDecisions(this.database, this.#host, limit);
  }

  async postponeDecision(interactionId: string, ms: number): Promise<void> {
    return postponeDecision(this.database, interactionId, ms);
  }

  async findNextDecision(): Promise<NextDecision | null> {
    return findNextDecision(this.database);
  }

  async countPending(now: number): Promise<{ pending: number; overdue: number }> {
    return countPending(this.database, now);
  }

  async readJournal(runId: string, protocol: Protocol, range: ReadRange): Promise<string[]> {
    return readTexts(this.database, runId, protocol, range);
  }

  async readLines(runId: string, protocol: Protocol, afterSeq: number, maxBytes: number): Promise<Lines | null> {
    return readLines(this.database, runId, protocol, afterSeq, maxBytes);
  }

  async listSegments(runId: string, protocol: Protocol): Promise<SegmentRange[]> {
    return listSegments(this.database, runId, protocol);
  }

  async readSegments(...[runId, protocol, afterSeq, maxBytes]: Parameters<Store['readSegments']>) {
    return readStoredSegments(this.database, runId, protocol, { afterSeq, maxBytes });
  }

  async recomputeDigest(runId: string): Promise<string> {
    return digestUpTo(this.database, runId, Number.MAX_SAFE_INTEGER);
  }

  async nextDelivery(now: number, except: readonly string[] = []): Promise<Delivery | null> {
    return nextDelivery(this.database, this.#claimant, { now, except });
  }

  async nextDeliveryAt(except: readonly string[] = []): Promise<number | null> {
    return nextDeliveryAt(this.database, this.#claimant, { now: this.#clock.now(), except });
  }

  get #claimant(): string {
    return this.#host ?? this.#instance;
  }

  async finishDelivery(deliveryId: string, outcome: DeliveryOutcome): Promise<boolean> {
    return finishDelivery(this.database, deliveryId, outcome);
  }

  async countDeliveries(): Promise<{ pending: number; given_up: number }> {
    return countDeliveries(this.database);
  }

  async sumTurns(runId?: string): Promise<ProfileTotals[]> {
    return sumTurns(this.database, runId);
  }

  async findWrongTotals(): Promise<WrongTotal[]> {
    return compareTotals(this.database);
  }

  async recountTotals(): Promise<void> {
    await recountTotals(this.database);
  }

  async close(): Promise<void> {
    await this.#listener.close();
    await this.database.close();
  }
}

// The commit is done, whatever the listener does.
function ignoreErrors(tell: () => void): void {
  try {
    tell();
  } catch {
    // Errors of a listener are ignored.
  }
}
