// The parameters and results of the client's calls.
import type { CreateRunRequest } from '../commands/create-request.js';
import type { InteractionView, RunSummaryView, RunView } from '../journal/run-view.js';
import type { Json } from '../kernel/json.js';
import type { ShortenedPart } from '../store/summary-reader.js';
import type { ParleyError } from './parley-error.js';

/** How to reach a server. */
export interface ClientOptions {
  /** The address of the server, for instance `http://127.0.0.1:7717`; `''` in a page of the server itself. */
  readonly url: string;
  /** The access token. A page with a signed-in browser session needs none. */
  readonly token?: string | undefined;
  /** The function that sends requests; by default the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Waits before the next attempt; tests replace it. */
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

/** Which runs to list. */
export interface RunFilter {
  /** Only runs in this state. */
  readonly status?: RunView['status'];
  /** Only runs of this engine. */
  readonly engine?: string;
  /** Only runs with this label, as `name=value`. */
  readonly label?: string;
  /** `next_cursor` of the previous page. */
  readonly cursor?: string;
  /** The maximum size of a page, from 1 to 500; by default 50. */
  readonly limit?: number;
}

/** Which open questions to list. */
export interface InboxFilter {
  /** Only questions of runs of this engine. */
  readonly engine?: string;
  /** Only questions of runs with this label, as `name=value`. */
  readonly label?: string;
  /** True: only questions whose time limit has passed. */
  readonly overdue?: boolean;
  /** `next_cursor` of the previous page. */
  readonly cursor?: string;
  /** The maximum size of a page, from 1 to 500; by default 50. */
  readonly limit?: number;
}

/** A page of runs. */
export interface RunPage {
  /** The runs, newest first. */
  readonly runs: readonly RunSummaryView[];
  /** Pass it as `cursor` for the next page; null at the end. */
  readonly next_cursor: string | null;
}

/** A page of open questions. */
export interface InboxPage {
  /** The questions, oldest first. */
  readonly interactions: readonly InboxItem[];
  /** Pass it as `cursor` for the next page; null at the end. */
  readonly next_cursor: string | null;
}

/** Options of a retry. */
export interface RetryRequest {
  /** Idempotency key: repeating the request returns the same run. */
  readonly request_id?: string;
  /** Creates the run even if the engine is known to be missing or logged out. */
  readonly force?: boolean;
}

/** A new prompt for the conversation of an existing run. */
export interface ContinueRequest extends RetryRequest {
  /** What the agent should do next. */
  readonly prompt: string;
}

/** The result of a run. */
export interface RunResult {
  /** The run. */
  readonly run_id: string;
  /** The state of the run. */
  readonly status: RunView['status'];
  /** The result; null until the run has succeeded. */
  readonly result: Json;
  /** Why the run failed; null if it did not. */
  readonly error: RunView['error'];
}

/** Which part of the engine's output to read. */
export interface LogRange {
  /** The turn, from 1; by default the last one. */
  readonly attempt?: number;
  /** The stream; by default `stdout`. */
  readonly stream?: 'stdout' | 'stderr';
  /** The first byte; by default 0. */
  readonly byte_from?: number;
  /** The byte after the last one; by default the end. */
  readonly byte_to?: number;
}

/** How far the check of a run has progressed. */
export interface VerifyProgress {
  /** How many events are checked. */
  readonly events: number;
  /** How many events the run has. */
  readonly total_events: number;
  /** How many bytes of engine output are checked. */
  readonly log_bytes: number;
  /** How many bytes of engine output the run has; 0 until all events are checked. */
  readonly total_log_bytes: number;
}

/** What to do while a check is not finished. */
export interface VerifyOptions {
  /** Called about twice a second while the check runs. */
  readonly onProgress?: (progress: VerifyProgress) => void;
  /** Called every few seconds until the check runs, with the number of checks that run before it. */
  readonly onWaiting?: (checksBefore: number) => void;
}

/** One check of a run. */
export interface VerificationCheck {
  /** The name of the check. */
  readonly name: string;
  /** Whether the check passed. */
  readonly ok: boolean;
  /** The finding, as a sentence for people. */
  readonly finding: string;
}

/** The result of the check of a run. */
export interface Verification {
  /** The run. */
  readonly run_id: string;
  /** Whether every check passed. */
  readonly ok: boolean;
  /** The checks. */
  readonly checks: readonly VerificationCheck[];
}

/** A question in the inbox, with the run that asks it. */
export interface InboxItem extends InteractionView {
  /** The engine of the run. */
  readonly engine: string;
  /** The prompt of the run. */
  readonly prompt: string;
  /** The labels of the run. */
  readonly labels: Readonly<Record<string, string>>;
  /** The parts that are longer than shown. Read a truncated question with `interaction()` before you answer it. */
  readonly truncated: readonly ShortenedPart[];
}

/** Discard the questions that you know; the open ones follow. */
export interface StreamReset {
  /** The discriminant. */
  readonly type: 'reset';
}

/** The stream is complete: from here on it contains only changes. */
export interface StreamReady {
  /** The discriminant. */
  readonly type: 'ready';
}

/** A question was asked, or is no longer open. */
export interface InboxItemChange {
  /** The discriminant. */
  readonly type: 'pending' | 'resolved';
  /** The question. */
  readonly item: InboxItem;
}

/** A change of the inbox: `reset`, every open question as `pending`, `ready`, then changes as they happen. */
export type InboxChange = StreamReset | StreamReady | InboxItemChange;

/** A run is new, changed its state, or asked a question. */
export interface RunChanged {
  /** The discriminant. */
  readonly type: 'run';
  /** The run after the change. */
  readonly run: RunSummaryView;
}

/** A run was deleted. */
export interface RunGone {
  /** The discriminant. */
  readonly type: 'gone';
  /** The id of the deleted run. */
  readonly run_id: string;
}

/**
 * A change of the list of runs: `reset` (what you know may be outdated), `ready` (every later change is reported, so
 * list the runs now), then changes as they happen.
 */
export type RunsChange = StreamReset | StreamReady | RunChanged | RunGone;

/** How to read a stream that reconnects. */
export interface ChangeOptions {
  /** Ends the stream. */
  readonly signal?: AbortSignal;
  /** Called before the client reconnects, with the reason. */
  readonly onReconnect?: (error: ParleyError) => void;
  /** Called whenever the stream is connected, including after a reconnect. */
  readonly onOpen?: () => void;
}

/** How to read the events of a run. */
export interface StreamOptions extends ChangeOptions {
  /** The `seq` of the last event that you have; the stream starts after it. */
  readonly cursor?: number;
}

/** The values of new runs that do not set their own, as `GET /v1/engines` returns them. */
export interface NewRunDefaults {
  /** Whether the agent may ask questions; null: not set, so `auto` over HTTP. */
  readonly execution_mode: 'auto' | 'interactive' | null;
  /** What the agent may do. */
  readonly permission: NonNullable<CreateRunRequest['permission']>;
  /** The model, by engine. */
  readonly model: Readonly<Record<string, string>>;
  /** The longest turn in seconds; null: no limit. */
  readonly turn_timeout_sec: number | null;
  /** The longest time in seconds without output while no tool call is known to be running. */
  readonly idle_timeout_sec: number;
  /** The longest time in seconds without output while a tool call is running. */
  readonly tool_timeout_sec: number;
}
