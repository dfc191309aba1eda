// The port for runs. Each call is one transaction. Only the orchestrator writes through it.
import type { AuditTrace } from './audit.js';
import type { CrashCounts } from './crash-counts.js';
import { FIRST_DIGEST } from './digest.js';
import type { SalvagedRun } from './salvage.js';
import type { NewDelivery, Delivery, DeliveryOutcome } from './delivery.js';
import type { Message } from '../kernel/message.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { RunError } from '../run/run-error.js';
import type {
  Actor,
  CancelRequest,
  FoldedQuestion,
  FoldedRun,
  InteractionState,
  Resolution,
  TurnCounts,
} from '../run/run-fold.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunState } from '../run/statechart.js';
import type { WaitSpec } from '../run/waiting/wait-policy.js';
import type { Committed, CommitListener } from './committed.js';
import type { RunFinder } from './run-finder.js';
import type { SummaryReader } from './summary-reader.js';
import type { WrongTotal } from './totals.js';

export { GIVEN_UP_KEPT_MS, type Delivery, type DeliveryOutcome, type NewDelivery } from './delivery.js';

export type Protocol = 'rasp' | 'fcmp';
export type { Actor, CancelRequest, InteractionState, Resolution, TurnCounts };

// The request of a run; never changes.
export interface RunSpec extends WaitSpec {
  readonly engine: string;
  readonly execution_mode: ExecutionMode;
  readonly prompt: string;
  readonly cwd: string;
  readonly home: string | null;
  readonly model?: string | undefined;
  readonly permission: 'read-only' | 'workspace-write' | 'full';
  readonly output_schema?: JsonObject | undefined;
  readonly runtime_options: JsonObject;
  readonly labels: Readonly<Record<string, string>>;
  readonly continue_from?: string | undefined;
  // The run whose session was copied, in the state of that time.
  readonly fork_from?: { readonly run_id: string; readonly session: string; readonly home: string } | undefined;
  // The interrupted run that Parley repeats with this one (recovery.running); absent for a retry that somebody
  // requested.
  readonly retry_of?: string | undefined;
}

// The cancel request of a run as its row holds it.
export interface StoredCancelRequest extends CancelRequest {
  // Another host left the request in the row, and the owner of the run has not recorded it as an event.
  readonly unrecorded?: true;
}

export interface RunRecord {
  readonly run_id: string;
  readonly request_id: string;
  readonly spec: RunSpec;
  readonly status: RunState;
  readonly attempt_number: number;
  // Grows with each owner of a turn: writes of an earlier owner are refused.
  readonly epoch: number;
  readonly error: RunError | null;
  readonly result: Json | null;
  // Stored before the turn is ended, so that a crash does not lose the request.
  readonly cancel_requested: StoredCancelRequest | null;
  // How long its questions have waited for a person in total, without the open one.
  readonly waited_ms: number;
  // How many hosts have crashed while they were about to start this turn or ran it.
  readonly crashes: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly heads: JournalHeads;
  // Only a RunSummary has it, so the compiler rejects a shortened run where a complete one is needed.
  readonly truncated?: never;
}

// The end of a run's journal.
export interface JournalHeads {
  readonly rasp_seq: number;
  readonly fcmp_seq: number;
  readonly ts: number;
  // Chained over the RASP bytes, flush by flush.
  readonly digest: string;
}

// The heads of a new run.
export const EMPTY_JOURNAL: JournalHeads = { rasp_seq: 0, fcmp_seq: 0, ts: 0, digest: FIRST_DIGEST };

// Complete lines of one protocol, as they are stored and sent.
export interface Lines {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly bytes: Buffer;
}

// What one flush adds to the journal. FCMP may lag behind: lines are held back while they may be an echo. A store may
// keep the bytes of a flush of up to 64 KiB. Those of a larger one are used again after its append.
export interface JournalFlush {
  readonly rasp: Lines;
  // The first time may be earlier than that of the flush.
  readonly fcmp: (Lines & { readonly firstTs: number }) | null;
  readonly firstTs: number;
  readonly lastTs: number;
}

export interface InteractionRecord extends FoldedQuestion {
  readonly run_id: string;
  // Only an InteractionSummary has it.
  readonly truncated?: never;
}

export interface NewRun {
  readonly run_id: string;
  readonly request_id: string;
  // The digest of the body: the same request id with another body is a conflict.
  readonly request_digest: string;
  readonly spec: RunSpec;
  readonly session_timeout_sec: number;
  readonly handle: EngineSessionHandle | null;
  readonly created_at: number;
  readonly journal: JournalFlush;
  // The run uses existing files on the host that creates it.
  readonly local?: boolean;
  // The run needs the files of this other run, wherever they are.
  readonly beside?: string | undefined;
  // The run starts with the crash count of this run: it is the same work, repeated by Parley itself.
  readonly crashes_of?: string | undefined;
  // A new run is refused while this many are queued.
  readonly queue_limit: number;
}

export type CreateOutcome =
  | { readonly created: true; readonly run: RunRecord }
  | { readonly created: false; readonly reason: 'known'; readonly run: RunRecord; readonly sameRequest: boolean }
  | { readonly created: false; readonly reason: 'queue_full'; readonly queued: number }
  // Another run is using the session that this one would continue.
  | { readonly created: false; readonly reason: 'session_in_use'; readonly by: string };

// Events of one run, and the state before and after them. The rows are written from the difference of the two states.
// Everything is committed, or nothing.
export interface RunAppend {
  readonly run_id: string;
  // Compared inside the transaction, together with the status of `before`; a difference refuses the append.
  readonly expect: { readonly epoch: number; readonly rasp_seq: number };
  readonly now: number;
  // The new epoch, if the run gets another owner.
  readonly epoch?: number | undefined;
  // Absent if only the owner changes.
  readonly lines?: JournalFlush | undefined;
  readonly before: FoldedRun;
  readonly after: FoldedRun;
  // A run that is created in the same transaction, unless its request id is known or this run has a cancel request.
  readonly create?: NewRun | undefined;
  // The webhook deliveries of this change.
  readonly deliveries?: readonly NewDelivery[] | undefined;
}

export type AppendOutcome =
  | { readonly committed: true; readonly heads: JournalHeads }
  | { readonly committed: false; readonly reason: 'unknown_run' | 'status' | 'epoch' | 'seq' | 'interaction' };

/** The totals of all turns of one engine and parser profile. */
export interface ProfileTotals {
  /** The engine. */
  readonly engine: string;
  /** The parser profile. */
  readonly profile: string;
  /** How many turns it parsed. */
  readonly turns: number;
  /** How many units (lines or documents) the engine printed. */
  readonly units: number;
  /** How many units the parser understood. */
  readonly parsed: number;
  /** How many units were kept as raw output only. */
  readonly fallbacks: number;
  /** `parsed` divided by `units`; null if nothing was printed. */
  readonly hit_rate: number | null;
  /** Parser warnings, by code. */
  readonly warnings: Readonly<Record<string, number>>;
  /** Turns whose completion was judged unknown, by reason code. */
  readonly unknown: Readonly<Record<string, number>>;
}

export interface DeleteRunOptions {
  // The caller has found the run damaged: its state is ignored, unless a live host is working on it.
  readonly damaged?: boolean;
  // Who deletes the run and from which address, for the tombstone.
  readonly trace?: AuditTrace;
}

export type DeleteOutcome = 'deleted' | 'unknown_run' | 'not_ended' | 'session_in_use';

export interface RunFilter {
  readonly status?: RunState;
  readonly engine?: string;
  readonly label?: { readonly key: string; readonly value: string };
  // Only runs that were created before this one.
  readonly before?: string;
  readonly limit: number;
}

export interface EndedFilter {
  // Only runs that last changed before this time.
  readonly before: number;
  // Only runs after this one.
  readonly after?: Pick<EndedRun, 'run_id' | 'updated_at'> | undefined;
  readonly limit: number;
}

export interface EndedRun {
  readonly run_id: string;
  readonly updated_at: number;
  readonly home: string | null;
  // Its home belongs to the run that it continues.
  readonly continues: boolean;
}

export interface PendingFilter {
  readonly engine?: string;
  readonly label?: { readonly key: string; readonly value: string };
  // Only questions that are overdue at this time.
  readonly overdueAt?: number;
  // Only questions after this one.
  readonly after?: Pick<InteractionRecord, 'asked_at' | 'interaction_id'>;
  readonly limit: number;
}

export interface ReadRange {
  readonly fromSeq?: number;
  readonly toSeq?: number;
  readonly fromTs?: number;
  readonly toTs?: number;
  readonly limit: number;
  // Ends the read after the text that reaches it.
  readonly maxChars?: number;
  // Returns the stored events even if some are missing between or within segments. Without it, missing events are
  // reported as damage.
  readonly withGaps?: boolean;
}

// By what lines are found: the numbers and times of one stored piece.
export interface SegmentRange {
  readonly seq_from: number;
  readonly seq_to: number;
  readonly ts_from: number;
  readonly ts_to: number;
}

// A stored segment with its lines, as it was committed.
export interface StoredSegment extends SegmentRange {
  readonly body: Buffer;
}

// Before the first segment, whatever a damaged row holds.
export const FIRST_SEGMENT = Number.MIN_SAFE_INTEGER;

export type { Committed, CommitListener };

// The only calls that change runs.
interface RunWriter {
  createRun(run: NewRun): Promise<CreateOutcome>;
  append(append: RunAppend): Promise<AppendOutcome>;
  // Deletes an ended run with all its rows and leaves a tombstone in the administrative journal. Refused while another
  // run uses its home. The counts of its turns remain in the sum over all runs.
  deleteRun(runId: string, options?: DeleteRunOptions): Promise<DeleteOutcome>;
}

interface CommitFeed {
  // Whether listeners get every commit with its lines. Commits of other processes come without them.
  readonly isComplete: boolean;
  // Called after each commit of this process, before the caller gets its result, and soon after a commit of another
  // process on the same database. Errors of a listener are ignored. Returns a function that removes the listener.
  onCommitted(listener: CommitListener): () => void;
  // Until the returned function is called, listeners also get commits of other processes that only add events to this
  // run. Absent where listeners get every commit.
  follow?(runId: string): () => void;
  // Called when commits of other processes may have been missed: watchers must read again.
  onMissed(listener: () => void): () => void;
}

export interface RunReader {
  readonly summaries: SummaryReader;
  loadRun(runId: string): Promise<RunRecord | null>;
  // The readable parts of the run, and a list of the damage.
  salvageRun(runId: string): Promise<SalvagedRun | null>;
  // Finds another run that uses this home, ended or not.
  findInHome(home: string, except: string): Promise<string | null>;
  // Finds a run that has not ended and works in exactly this folder.
  findAtWork(cwd: string): Promise<string | null>;
  // The run that a request id was used for, and the digest of that request.
  loadRequest(requestId: string): Promise<{ readonly run: RunRecord; readonly digest: string } | null>;
  // Throws a DamagedDataError if one of the runs cannot be read; listRunIds still lists them.
  listRuns(filter: RunFilter): Promise<RunRecord[]>;
  listRunIds(filter: RunFilter): Promise<string[]>;
  // The run that ended first comes first. Reads columns only, so damaged runs are among them.
  listEnded(filter: EndedFilter): Promise<EndedRun[]>;
  loadHandle(requestId: string): Promise<EngineSessionHandle | null>;
}

interface InteractionReader {
  loadInteraction(interactionId: string): Promise<InteractionRecord | null>;
  // The question that was answered with this key.
  loadInteractionByKey(runId: string, idempotencyKey: string): Promise<InteractionRecord | null>;
  loadPendingInteraction(runId: string): Promise<InteractionRecord | null>;
  // The newest question of a run, answered or not.
  loadLatestInteraction(runId: string): Promise<InteractionRecord | null>;
  listInteractions(runId: string): Promise<InteractionRecord[]>;
  // Oldest question first. Damaged questions are left out; verify reports them.
  listPending(filter: PendingFilter): Promise<InteractionRecord[]>;
  // The question that the policy decides next, except for these.
  nextDecision(except?: readonly string[]): Promise<InteractionRecord | null>;
}

export interface RunQueue {
  // Oldest first.
  listQueued(limit: number): Promise<string[]>;
}

interface JournalReader {
  // The event texts of a run, in order.
  readJournal(runId: string, protocol: Protocol, range: ReadRange): Promise<string[]>;
  // Returns complete lines after a seq: as many as fit into maxBytes, at least one; null if there is none.
  readLines(runId: string, protocol: Protocol, afterSeq: number, maxBytes: number): Promise<Lines | null>;
  // Returns the stored segments of the journal, in order.
  listSegments(runId: string, protocol: Protocol): Promise<SegmentRange[]>;
  // Returns the segments whose first seq is after this one: as many as fit into maxBytes, at least one. Checks only
  // that each segment can be read: its numbers and times may be damaged.
  readSegments(runId: string, protocol: Protocol, afterSeq: number, maxBytes: number): Promise<StoredSegment[]>;
  // The digest of the stored RASP bytes; equal to the run's head if nothing was changed.
  recomputeDigest(runId: string): Promise<string>;
}

interface DeliveryQueue {
  // Returns the delivery that is due first at this time (the oldest of equals), except for these hooks.
  nextDelivery(now: number, except?: readonly string[]): Promise<Delivery | null>;
  nextDeliveryAt(except?: readonly string[]): Promise<number | null>;
  // Stores the outcome of one attempt. Returns false if the delivery already had an outcome.
  finishDelivery(deliveryId: string, outcome: DeliveryOutcome): Promise<boolean>;
  countDeliveries(): Promise<{ readonly pending: number; readonly given_up: number }>;
}

// Read from totals, so the cost does not grow with the number of runs.
interface RunCounts {
  countRuns(): Promise<Record<RunState, number>>;
  // Pending questions, and how many of them are overdue at this time.
  countPending(now: number): Promise<{ readonly pending: number; readonly overdue: number }>;
  // The totals of all runs including deleted ones, or of one stored run.
  sumTurns(runId?: string): Promise<ProfileTotals[]>;
  // Compares the totals with the rows, all of which it reads.
  findWrongTotals(): Promise<WrongTotal[]>;
  // Counts the totals again from the rows. Those of turns are never lowered, because deleted runs have no rows.
  recountTotals(): Promise<void>;
}

export interface Store
  extends
    RunWriter,
    CommitFeed,
    RunReader,
    InteractionReader,
    RunQueue,
    JournalReader,
    DeliveryQueue,
    RunCounts,
    CrashCounts,
    RunFinder {
  // Throws if new data would be lost, for stores where a read does not notice that.
  checkUsable?(): void;
  // Describes damage of rows that hold events of several runs, for stores with such rows.
  findGroupDamage?(): Message[];
  close(): Promise<void>;
}
