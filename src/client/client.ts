// Calls of a Parley server as functions. A stream goes on where it was after every loss of the connection: no event is
// left out and none comes twice. What the server refuses is thrown as a ParleyError with its code.
import type { FcmpEvent } from '../fcmp/event.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { CreateRunRequest } from '../commands/create-request.js';
import type { Reply } from '../commands/reply.js';
import type { InteractionView, RunSummaryView, RunView } from '../journal/run-view.js';
import type { ShortenedPart } from '../store/summary-reader.js';
import type { RaspEvent } from '../rasp/event.js';
import type { AuditPage, SessionPage, SignedIn, SignInLink } from './access-types.js';
import { ParleyError } from './parley-error.js';
import { readFrames, type Frame } from './read-frames.js';

export interface ClientOptions {
  // For instance http://127.0.0.1:7717; in a page of the server itself: ''.
  readonly url: string;
  // A page that was signed in needs none.
  readonly token?: string | undefined;
  readonly fetch?: typeof fetch;
  // How to wait before coming back; for tests.
  readonly wait?: (ms: number, signal: AbortSignal | undefined) => Promise<void>;
}

export interface RunFilter {
  readonly status?: RunView['status'];
  readonly engine?: string;
  // name=value
  readonly label?: string;
  readonly cursor?: string;
  readonly limit?: number;
}

export interface InboxFilter {
  readonly engine?: string;
  readonly label?: string;
  readonly overdue?: boolean;
  readonly cursor?: string;
  readonly limit?: number;
}

export interface InboxItem extends InteractionView {
  readonly engine: string;
  readonly prompt: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The parts that are longer than shown. Read a truncated question with `interaction()` before you answer it. */
  readonly truncated: readonly ShortenedPart[];
}

// reset: forget what you know; ready: everything that waits was told; then as it changes.
export type InboxChange =
  | { readonly type: 'reset' }
  | { readonly type: 'ready' }
  | { readonly type: 'pending' | 'resolved'; readonly item: InboxItem };

// reset: what is known may be old; ready: from here on every change is told, so list what there is now; then as they
// change.
export type RunsChange =
  | { readonly type: 'reset' }
  | { readonly type: 'ready' }
  | { readonly type: 'run'; readonly run: RunSummaryView }
  | { readonly type: 'gone'; readonly run_id: string };

export interface StreamOptions {
  // The seq of the last event that is known.
  readonly cursor?: number;
  readonly signal?: AbortSignal;
  // Told before it tries again, with what went wrong.
  readonly onReconnect?: (error: ParleyError) => void;
  // Told when it is connected, again too.
  readonly onOpen?: () => void;
}

export interface ParleyClient {
  // Tried again while the server cannot be reached: with its key it starts one run. The same goes for reply.
  create(request: CreateRunRequest): Promise<RunView>;
  get(runId: string): Promise<RunView>;
  /**
   * Newest first, in short form: `get()` has a run whole. A page may have fewer runs than `limit`; `next_cursor` tells
   * whether more follow.
   */
  list(filter?: RunFilter): Promise<{ readonly runs: readonly RunSummaryView[]; readonly next_cursor: string | null }>;
  cancel(runId: string): Promise<RunView>;
  retry(runId: string, request?: { readonly request_id?: string; readonly force?: boolean }): Promise<RunView>;
  continueFrom(
    runId: string,
    request: { readonly prompt: string; readonly request_id?: string; readonly force?: boolean },
  ): Promise<RunView>;
  // A new run with a copy of the conversation; the other stays as it is.
  fork(
    runId: string,
    request: { readonly prompt: string; readonly request_id?: string; readonly force?: boolean },
  ): Promise<RunView>;
  delete(runId: string): Promise<void>;
  reply(runId: string, reply: Reply, options?: { readonly signal?: AbortSignal }): Promise<RunView>;
  result(runId: string): Promise<{
    readonly run_id: string;
    readonly status: RunView['status'];
    readonly result: Json;
    readonly error: RunView['error'];
  }>;
  // What the engine printed: of the last turn, or of one, whole or a part.
  logs(
    runId: string,
    part?: {
      readonly attempt?: number;
      readonly stream?: 'stdout' | 'stderr';
      readonly byte_from?: number;
      readonly byte_to?: number;
    },
  ): Promise<Uint8Array>;
  verify(runId: string): Promise<{
    readonly run_id: string;
    readonly ok: boolean;
    readonly checks: readonly { readonly name: string; readonly ok: boolean; readonly finding: string }[];
  }>;
  interaction(runId: string): Promise<InteractionView>;
  inbox(
    filter?: InboxFilter,
  ): Promise<{ readonly interactions: readonly InboxItem[]; readonly next_cursor: string | null }>;
  // The conversation, until the run has ended.
  events(runId: string, options?: StreamOptions): AsyncGenerator<FcmpEvent, void>;
  // What was observed, until the run has ended.
  rasp(runId: string, options?: StreamOptions): AsyncGenerator<RaspEvent, void>;
  inboxChanges(options?: Omit<StreamOptions, 'cursor'>): AsyncGenerator<InboxChange, void>;
  // Each run that is new, changes its state, or asks.
  runChanges(options?: Omit<StreamOptions, 'cursor'>): AsyncGenerator<RunsChange, void>;
  /** Signs this browser in with the code of a link or a token; the session is in a cookie. For pages of the server. */
  signIn(by: { readonly code: string } | { readonly token: string }): Promise<SignedIn>;
  /** Ends this browser's session. */
  signOut(): Promise<void>;
  /** Makes a link that signs one browser in, once. For operators. */
  createSignInCode(options?: { readonly as?: string; readonly expires_in_sec?: number }): Promise<SignInLink>;
  /** Lists the browsers that are signed in: your own, or all for operators. */
  sessions(page?: { readonly cursor?: string; readonly limit?: number }): Promise<SessionPage>;
  /** Ends a session: your own, or any for operators. */
  endSession(sessionId: string): Promise<void>;
  /** Reads the administrative journal, by seq. For operators. */
  audit(page?: { readonly after?: number; readonly limit?: number }): Promise<AuditPage>;
  // Anything else: the answer as it is.
  request(method: string, path: string, body?: Json): Promise<Response>;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
// A quarter, a half, one, two, four and eight seconds: time enough to start a server again.
const MOST_TRIES = 7;
// The server gives a sign of life three times as often.
const SILENCE_MS = 45_000;

export function createClient({ url, token, fetch: send = fetch, wait = pause }: ClientOptions): ParleyClient {
  const base = url.replace(/\/+$/, '');
  const credentials: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function request(method: string, path: string, body?: Json, signal?: AbortSignal): Promise<Response> {
    const headers = { ...credentials, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
    let response: Response;
    try {
      response = await send(`${base}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      });
    } catch (cause) {
      throw new ParleyError(
        'UNREACHABLE',
        `${base === '' ? 'the server' : `the server at ${base}`} cannot be reached: ${reasonOf(cause)}`,
        0,
        {},
        { cause },
      );
    }
    if (!response.ok) throw await refusalOf(response);
    return response;
  }

  async function call<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    const response = await request(method, path, body as Json | undefined, signal);
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (cause) {
      // Text that is no JSON is not Parley's; anything else is an answer that broke off.
      if (cause instanceof SyntaxError)
        throw new ParleyError(
          'INTERNAL',
          `the answer to ${method} ${path} is not JSON`,
          response.status,
          {},
          { cause },
        );
      throw new ParleyError('UNREACHABLE', `the answer of the server broke off: ${reasonOf(cause)}`, 0, {}, { cause });
    }
  }

  // Safe to repeat: it only looks, or its key makes it count once.
  async function callSafely<T>(method: string, path: string, body?: object, signal?: AbortSignal): Promise<T> {
    for (let tries = 1, pauseMs = FIRST_PAUSE_MS; ; tries += 1, pauseMs *= 2) {
      try {
        return await call<T>(method, path, body, signal);
      } catch (error) {
        if (!(error instanceof ParleyError && error.passing) || tries === MOST_TRIES || signal?.aborted) throw error;
      }
      await wait(pauseMs, signal);
    }
  }

  // The frames of one connection after the other, in groups, for as long as the reader wants them.
  async function* connect(
    pathOf: () => string,
    { signal, onReconnect, onOpen }: StreamOptions,
  ): AsyncGenerator<readonly Frame[], void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const silence = new Silence(signal);
      try {
        const response = await request('GET', pathOf(), undefined, silence.signal);
        onOpen?.();
        if (response.body)
          for await (const frames of readFrames(response.body, () => silence.heard())) {
            pauseMs = FIRST_PAUSE_MS;
            yield frames;
          }
        throw new ParleyError('UNREACHABLE', 'the connection was closed', 0);
      } catch (error) {
        if (signal?.aborted) return;
        const failure =
          error instanceof ParleyError
            ? error
            : new ParleyError('UNREACHABLE', `the connection was lost: ${reasonOf(error)}`, 0, {}, { cause: error });
        if (!failure.passing) throw failure;
        onReconnect?.(failure);
      } finally {
        silence.end();
      }
      await wait(pauseMs, signal);
      if (signal?.aborted) return;
    }
  }

  async function* stream<E extends { readonly seq: number }>(
    runId: string,
    kind: 'events' | 'rasp',
    options: StreamOptions,
  ): AsyncGenerator<E, void> {
    let seq = options.cursor ?? 0;
    for await (const frames of connect(() => `/v1/runs/${encodeURIComponent(runId)}/${kind}?cursor=${seq}`, options)) {
      for (const { event, data } of frames) {
        if (event === 'end') return;
        // A damaged piece of the journal: the stream goes on behind it.
        if (event === 'damaged') seq = Math.max(seq, (JSON.parse(data) as { to_seq: number }).to_seq);
        if (event !== 'message') continue;
        const told = JSON.parse(data) as E;
        if (told.seq <= seq) continue;
        if (told.seq !== seq + 1) throw new ParleyError('INTERNAL', `event ${told.seq} came after ${seq}`, 0);
        seq = told.seq;
        yield told;
      }
    }
  }

  return {
    create: (run) => {
      const key = run.request_id ?? newKey();
      return key === undefined
        ? call('POST', '/v1/runs', run)
        : callSafely('POST', '/v1/runs', { ...run, request_id: key });
    },
    get: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}`),
    list: (filter = {}) => callSafely('GET', `/v1/runs${queryOf({ ...filter })}`),
    cancel: (runId) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/cancel`),
    retry: (runId, again = {}) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/retry`, again),
    continueFrom: (runId, next) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/continue`, next),
    fork: (runId, next) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/fork`, next),
    delete: (runId) => call('DELETE', `/v1/runs/${encodeURIComponent(runId)}`),
    reply: (runId, reply, { signal } = {}) => {
      const path = `/v1/runs/${encodeURIComponent(runId)}/interaction/reply`;
      const key = reply.idempotency_key ?? newKey();
      return key === undefined
        ? call('POST', path, reply, signal)
        : callSafely('POST', path, { ...reply, idempotency_key: key }, signal);
    },
    result: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}/result`),
    logs: async (runId, part = {}) =>
      new Uint8Array(
        await (await request('GET', `/v1/runs/${encodeURIComponent(runId)}/logs${queryOf({ ...part })}`)).arrayBuffer(),
      ),
    verify: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}/verify`),
    interaction: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}/interaction`),
    inbox: (filter = {}) => callSafely('GET', `/v1/interactions${queryOf({ ...filter })}`),
    events: (runId, options = {}) => stream<FcmpEvent>(runId, 'events', options),
    rasp: (runId, options = {}) => stream<RaspEvent>(runId, 'rasp', options),
    inboxChanges: async function* (options = {}) {
      for await (const frames of connect(() => '/v1/interactions/events', options)) {
        for (const { event, data } of frames) {
          if (event === 'reset' || event === 'ready') yield { type: event };
          else if (event === 'pending' || event === 'resolved')
            yield { type: event, item: JSON.parse(data) as InboxItem };
        }
      }
    },
    runChanges: async function* (options = {}) {
      for await (const frames of connect(() => '/v1/changes', options)) {
        for (const { event, data } of frames) {
          if (event === 'reset' || event === 'ready') yield { type: event };
          else if (event === 'run') yield { type: event, run: JSON.parse(data) as RunSummaryView };
          else if (event === 'gone') yield { type: event, run_id: (JSON.parse(data) as { run_id: string }).run_id };
        }
      }
    },
    // Repeated, a code would be used up already.
    signIn: (by) => call('POST', '/v1/sign-in', by),
    signOut: () => call('POST', '/v1/sign-out'),
    createSignInCode: (options = {}) => call('POST', '/v1/sign-in-codes', options),
    sessions: (page = {}) => callSafely('GET', `/v1/sessions${queryOf({ ...page })}`),
    endSession: (sessionId) => call('DELETE', `/v1/sessions/${encodeURIComponent(sessionId)}`),
    audit: (page = {}) => callSafely('GET', `/v1/audit${queryOf({ ...page })}`),
    request: (method, path, body) => request(method, path, body),
  };
}

// Ends a connection on which nothing was heard for too long, or which the reader does not want any more.
class Silence {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal | undefined;
  readonly #stop = (): void => this.#controller.abort();
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(outer: AbortSignal | undefined) {
    this.#outer = outer;
    if (outer?.aborted) this.#controller.abort();
    outer?.addEventListener('abort', this.#stop, { once: true });
    this.heard();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  heard(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#stop, SILENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#outer?.removeEventListener('abort', this.#stop);
    this.#controller.abort();
  }
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', done, { once: true });
  });
}

async function refusalOf(response: Response): Promise<ParleyError> {
  const body = (await response.json().catch(() => null)) as {
    error?: { code?: string; message?: string; details?: JsonObject };
  } | null;
  const { code = 'INTERNAL', message = `the server answered ${response.status}`, details } = body?.error ?? {};
  return new ParleyError(code, message, response.status, details);
}

// A page that came over plain HTTP from another machine cannot make one; its calls are not repeated then.
function newKey(): string | undefined {
  return globalThis.crypto?.randomUUID?.();
}

// fetch hides why behind its own message.
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

function queryOf(filter: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
}
