// The port: what is KEPT of runs. A call is a whole transaction as data. Only the orchestrator writes through it.
import type { AuditTrace } from './audit.js';
import type { CrashCounts } from './crash-counts.js';
import { FIRST_DIGEST } from './digest.js';
import type { SalvagedRun } from './salvage.js';
import type { NewDelivery, Delivery, DeliveryOutcome } from './delivery.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { RaspData } from '../rasp/event.js';
import type { ExecutionMode } from '../run/attempt.js';
import type { RunError } from '../run/judge-completion.js';
import type { EngineSessionHandle } from '../run/session-handle.js';
import type { RunState } from '../run/statechart.js';
import type { Committed, CommitListener } from './committed.js';
import type { RunFinder } from './run-finder.js';
import type { SummaryReader } from './summary-reader.js';

export { GIVEN_UP_KEPT_MS, type Delivery, type DeliveryOutcome, type NewDelivery } from './delivery.js';

export type Protocol = 'rasp' | 'fcmp';
export type Actor = NonNullable<RaspData['lifecycle.state.changed']['actor']>;

// What a run was asked to do; never changes.
export interface RunSpec {
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
  // It begins with a copy of that run's session, as it was then.
  readonly fork_from?: { readonly run_id: string; readonly session: string; readonly home: string } | undefined;
  // The interrupted run that this one repeats by itself (recovery.running); a retry that somebody asked for has none.
  readonly retry_of?: string | undefined;
  // The session is where its process is; only where sessions.sticky is on.
  readonly sticky?: boolean | undefined;
}

export interface RunRecord {
  readonly run_id: string;
  readonly request_id: string;
  readonly spec: RunSpec;
  readonly status: RunState;
  readonly attempt_number: number;
  // Grows with each owner of a turn: what an older owner writes is refused.
  readonly epoch: number;
  readonly error: RunError | null;
  readonly result: Json | null;
  // Somebody wants it canceled; kept so that a crash does not forget it.
  readonly cancel_requested: CancelWish | null;
  // How long its questions have waited for a person, all in all; one that still waits is not in it.
  readonly waited_ms: number;
  // How many hosts have crashed while they were about to start this turn, or ran it.
  readonly crashes: number;
  readonly created_at: number;
  readonly updated_at: number;
  readonly heads: JournalHeads;
  // Only a RunSummary has it: the compiler refuses a shortened run where a whole one is needed.
  readonly truncated?: never;
}

export interface CancelWish {
  readonly at: number;
  readonly actor: Actor | null;
}

// Where the journal of a run ends.
export interface JournalHeads {
  readonly rasp_seq: number;
  readonly fcmp_seq: number;
  readonly ts: number;
  // Chained over the RASP bytes, flush by flush.
  readonly digest: string;
}

// Of a run that is being created.
export const EMPTY_JOURNAL: JournalHeads = { rasp_seq: 0, fcmp_seq: 0, ts: 0, digest: FIRST_DIGEST };

// Whole lines of one protocol, as they are stored and sent.
export interface Lines {
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly bytes: Buffer;
}

// What one flush adds to the journal. FCMP may stay behind: lines are held back while they may be an echo.
export interface JournalFlush {
  readonly rasp: Lines;
  // Its first time may be earlier than that of the flush.
  readonly fcmp: (Lines & { readonly firstTs: number }) | null;
  readonly firstTs: number;
  readonly lastTs: number;
}

export type InteractionState = 'pending' | 'answered' | 'auto_decided' | 'canceled' | 'abandoned';

export interface InteractionRecord {
  readonly interaction_id: string;
  readonly run_id: string;
  readonly attempt_number: number;
  // As in the event that asked.
  readonly question: JsonObject;
  readonly state: InteractionState;
  readonly asked_at: number;
  // When the session timeout is over: from then on it is overdue, or is decided.
  readonly due_at: number;
  // Whether the policy decides at that time (the user's reply is not required).
  readonly decides: boolean;
  readonly resolution: Resolution | null;
  // Only an InteractionSummary has it.
  readonly truncated?: never;
}

export interface Resolution {
  readonly at: number;
  readonly response: Json;
  readonly actor: Actor | null;
  readonly idempotency_key: string | null;
  // The answer ends the conversation instead of continuing it.
  readonly finish: boolean;
}

export interface NewRun {
  readonly run_id: string;
  readonly request_id: string;
  // Of the body: the same request id with another body is a conflict.
  readonly request_digest: string;
  readonly spec: RunSpec;
  readonly session_timeout_sec: number;
  readonly handle: EngineSessionHandle | null;
  readonly created_at: number;
  readonly journal: JournalFlush;
  // It works in files that are there already, where it is created.
  readonly local?: boolean;
  // It needs the files of this run, wherever they are.
  readonly beside?: string | undefined;
  // It starts with the crashes that this run has counted: it is the same work, tried again by Parley itself.
  readonly crashes_of?: string | undefined;
  // A new run is refused while so many are queued.
  readonly queue_limit: number;
}

export type CreateOutcome =
  | { readonly created: true; readonly run: RunRecord }
  | { readonly created: false; readonly reason: 'known'; readonly run: RunRecord; readonly sameRequest: boolean }
  | { readonly created: false; readonly reason: 'queue_full'; readonly queued: number }
  // Another run is at work in the session that this one would continue.
  | { readonly created: false; readonly reason: 'session_in_use'; readonly by: string };

// One change of a run with everything that belongs to it. All of it is committed, or nothing.
export interface RunChange {
  readonly run_id: string;
  // Compared inside the transaction; a difference refuses the change.
  readonly expect: { readonly status: RunState; readonly epoch: number; readonly rasp_seq: number };
  readonly now: number;
  readonly set?: {
    readonly status?: RunState;
    readonly attempt_number?: number;
    readonly epoch?: number;
    readonly error?: RunError | undefined;
    readonly result?: Json | undefined;
    readonly cancel_requested?: CancelWish | undefined;
  };
  readonly journal?: JournalFlush | undefined;
  // The turn that ended, for the counts.
  readonly turn?: TurnCounts | undefined;
  readonly handle?: EngineSessionHandle | undefined;
  readonly ask?: Omit<InteractionRecord, 'run_id' | 'state' | 'resolution'> | undefined;
  readonly resolve?:
    | {
        readonly interaction_id: string;
        readonly state: Exclude<InteractionState, 'pending'>;
        readonly resolution: Resolution;
      }
    | undefined;
  // A run that is created in the same transaction, unless its request id is known or somebody wants this run canceled.
  readonly create?: NewRun | undefined;
  // Who is to be told of it.
  readonly deliveries?: readonly NewDelivery[] | undefined;
}

export type CommitOutcome =
  | { readonly committed: true; readonly heads: JournalHeads }
  | { readonly committed: false; readonly reason: 'unknown_run' | 'status' | 'epoch' | 'seq' | 'interaction' };

// What the parser made of one turn, and how the turn was judged.
export type TurnCounts = Pick<RaspData['lifecycle.turn.ended'], 'parser' | 'completion'> & {
  readonly attempt_number: number;
};

// Turns added up by engine and profile.
export interface ProfileTotals {
  readonly engine: string;
  readonly profile: string;
  readonly turns: number;
  readonly units: number;
  readonly parsed: number;
  readonly fallbacks: number;
  // Null while nothing was printed.
  readonly hit_rate: number | null;
  readonly warnings: Readonly<Record<string, number>>;
  // Completions judged unknown, by reason code.
  readonly unknown: Readonly<Record<string, number>>;
}

export interface DeleteRunOptions {
  // The caller has found the run damaged: its state does not matter, unless a live host is at work on it.
  readonly damaged?: boolean;
  // Who deletes it and from where, for the tombstone.
  readonly trace?: AuditTrace;
}

export type DeleteOutcome = 'deleted' | 'unknown_run' | 'not_ended' | 'session_in_use';

export interface RunFilter {
  readonly status?: RunState;
  readonly engine?: string;
  readonly label?: { readonly key: string; readonly value: string };
  // Runs that came before this one.
  readonly before?: string;
  readonly limit: number;
}

export interface PendingFilter {
  readonly engine?: string;
  readonly label?: { readonly key: string; readonly value: string };
  // Only those whose time is over then.
  readonly overdueAt?: number;
  // Those that come after this one.
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
  // Answers what is stored even if events are missing between or within the pieces. Without it that is damage.
  readonly withGaps?: boolean;
}

// By what lines are found: the numbers and times of one stored piece.
export interface SegmentRange {
  readonly seq_from: number;
  readonly seq_to: number;
  readonly ts_from: number;
  readonly ts_to: number;
}

export type { Committed, CommitListener };

export interface Store extends CrashCounts, RunFinder {
  // Whether nobody else writes to what it stores.
  readonly isAlone: boolean;
  readonly summaries: SummaryReader;
  // Throws if what is stored would be lost; where a read does not tell.
  checkUsable?(): void;
  createRun(run: NewRun): Promise<CreateOutcome>;
  commit(change: RunChange): Promise<CommitOutcome>;
  // A terminal run with all its rows; not while another run lives in its home. `damaged`: whatever its state is, unless
  // a live host is at work on it; the caller has found it damaged. Leaves a tombstone in the administrative journal.
  // The counts of its turns are kept in the sum over all.
  deleteRun(runId: string, options?: DeleteRunOptions): Promise<DeleteOutcome>;
  // Told right after each commit of this process, before it is answered, and soon after one of another process on the
  // same database; what it throws is lost. Answers how to stop it.
  onCommitted(listener: CommitListener): () => void;
  // Told when commits of others may have been missed: whoever watches must look for himself.
  onMissed(listener: () => void): () => void;

  loadRun(runId: string): Promise<RunRecord | null>;
  // The run as far as it can be read, and what of it is damaged.
  salvageRun(runId: string): Promise<SalvagedRun | null>;
  // Another run that lives in this home, ended or not.
  findInHome(home: string, but: string): Promise<string | null>;
  // A run that has not ended and works in this very folder.
  findAtWork(cwd: string): Promise<string | null>;
  // The run that a request id was used for, and the digest of that request.
  loadRequest(requestId: string): Promise<{ readonly run: RunRecord; readonly digest: string } | null>;
  // All of them, or a DamagedDataError if one cannot be read; their ids can be, then.
  listRuns(filter: RunFilter): Promise<RunRecord[]>;
  listRunIds(filter: RunFilter): Promise<string[]>;
  loadHandle(requestId: string): Promise<EngineSessionHandle | null>;
  loadInteraction(interactionId: string): Promise<InteractionRecord | null>;
  // The one that was answered with this key.
  loadByKey(runId: string, idempotencyKey: string): Promise<InteractionRecord | null>;
  loadPending(runId: string): Promise<InteractionRecord | null>;
  // The last question of a run, answered or not.
  loadLatest(runId: string): Promise<InteractionRecord | null>;
  // All questions of a run.
  listInteractions(runId: string): Promise<InteractionRecord[]>;
  // Oldest question first. One that cannot be read is left out; verify tells of it.
  listPending(filter: PendingFilter): Promise<InteractionRecord[]>;
  // The earliest question that the policy will decide.
  nextDecision(): Promise<InteractionRecord | null>;
  // Oldest first.
  listQueued(limit: number): Promise<string[]>;
  // Those that may be begun here, oldest first: no other host begins them for a moment.
  claimQueued(limit: number, except: readonly string[]): Promise<string[]>;
  // The event texts of a run, in order.
  readJournal(runId: string, protocol: Protocol, range: ReadRange): Promise<string[]>;
  // The same as whole lines: those after a seq, as many as fit, at least one; null if there is none.
  readLines(runId: string, protocol: Protocol, afterSeq: number, maxBytes: number): Promise<Lines | null>;
  // Which lines stand in which piece of the journal, in order.
  listSegments(runId: string, protocol: Protocol): Promise<SegmentRange[]>;
  countRuns(): Promise<Record<RunState, number>>;
  // Questions that wait, and how many of them are overdue at this time.
  countPending(now: number): Promise<{ readonly pending: number; readonly overdue: number }>;
  // The digest of the stored RASP bytes; equal to the run's head if nothing was changed.
  recomputeDigest(runId: string): Promise<string>;
  // The delivery that is due first at this time, the oldest of equals; those of the hooks named are left out.
  nextDelivery(now: number, except?: readonly string[]): Promise<Delivery | null>;
  // When the next one is due, or was.
  nextDeliveryAt(except?: readonly string[]): Promise<number | null>;
  // What became of a try. One that is settled already is not settled again.
  settleDelivery(deliveryId: string, outcome: DeliveryOutcome): Promise<boolean>;
  countDeliveries(): Promise<{ readonly pending: number; readonly given_up: number }>;
  // Over all runs there ever were, or over one that is kept.
  sumTurns(runId?: string): Promise<ProfileTotals[]>;
  close(): Promise<void>;
}
