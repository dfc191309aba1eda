// Calls a Parley server. A stream reconnects after a lost connection and continues after its last event, without gaps
// or duplicates. An error response is thrown as a ParleyError with its code.
import type { FcmpEvent } from '../fcmp/event.js';
import type { Json, JsonObject } from '../kernel/json.js';
import type { CreateRunRequest } from '../commands/create-request.js';
import type { Reply as UncheckedReply } from '../commands/reply.js';
import type { InteractionView, RunSummaryView, RunView } from '../journal/run-view.js';
import type { RaspEvent } from '../rasp/event.js';
import type { AuditPage, SessionPage, SignedIn, SignInLink } from './access-types.js';
import type {
  ChangeOptions,
  ClientOptions,
  ContinueRequest,
  InboxChange,
  InboxFilter,
  InboxItem,
  InboxPage,
  LogRange,
  RetryRequest,
  RunFilter,
  RunPage,
  RunResult,
  RunsChange,
  StreamOptions,
  Verification,
  VerifyOptions,
  VerifyProgress,
} from './call-types.js';
import { clientError } from './client-error.js';
import { ParleyError } from './parley-error.js';
import type { Values } from '../kernel/fill-template.js';
import { readFrames, type Frame } from './read-frames.js';
import type { Reply } from './reply-types.js';

/** The client of one server. Every call rejects with a `ParleyError` if the server refuses it or cannot be reached. */
export interface ParleyClient {
  /** Starts a run. While the server is unreachable the call is repeated: with its idempotency key it starts one run. */
  create(request: CreateRunRequest): Promise<RunView>;
  /** Returns a run. */
  get(runId: string): Promise<RunView>;
  /**
   * Lists runs, newest first, in short form; `get()` returns a complete run. A page may have fewer runs than `limit`;
   * `next_cursor` shows whether more follow.
   */
  list(filter?: RunFilter): Promise<RunPage>;
  /** Cancels a run. Resolves when every process of its agent has exited. */
  cancel(runId: string): Promise<RunView>;
  /** Starts an ended run again as a new run, from its session if it has one. */
  retry(runId: string, request?: RetryRequest): Promise<RunView>;
  /** Starts a new run in the session of an ended run. */
  continueFrom(runId: string, request: ContinueRequest): Promise<RunView>;
  /** Starts a new run with a copy of the conversation of another run, which stays as it is. */
  fork(runId: string, request: ContinueRequest): Promise<RunView>;
  /** Deletes an ended run and its files. */
  delete(runId: string): Promise<void>;
  /**
   * Answers the open question; the run continues. While the server is unreachable the call is repeated: with its
   * idempotency key the answer is applied once. `answerTo` builds a typed reply; pass an `UncheckedReply` to leave the
   * check to the server.
   */
  reply(runId: string, reply: Reply | UncheckedReply, options?: { readonly signal?: AbortSignal }): Promise<RunView>;
  /** Returns the result of a run. */
  result(runId: string): Promise<RunResult>;
  /** Returns the bytes that the engine printed: by default all of the last turn. */
  logs(runId: string, range?: LogRange): Promise<Uint8Array>;
  /** Checks that nothing recorded was altered. Checks run one at a time, and that of a large run takes minutes. */
  verify(runId: string, options?: VerifyOptions): Promise<Verification>;
  /** Returns the open question of a run. Rejects with `INTERACTION_NOT_FOUND` if there is none. */
  interaction(runId: string): Promise<InteractionView>;
  /** Lists the open questions of all runs, oldest first. */
  inbox(filter?: InboxFilter): Promise<InboxPage>;
  /** Streams the conversation until the run has ended. */
  events(runId: string, options?: StreamOptions): AsyncGenerator<FcmpEvent, void>;
  /** Streams the observed events until the run has ended. */
  rasp(runId: string, options?: StreamOptions): AsyncGenerator<RaspEvent, void>;
  /** Streams the inbox: every open question, then changes. */
  inboxChanges(options?: ChangeOptions): AsyncGenerator<InboxChange, void>;
  /** Streams the runs that are new, change their state, ask a question or are deleted. */
  runChanges(options?: ChangeOptions): AsyncGenerator<RunsChange, void>;
  /** Signs this browser in with the code of a link or a token; the session is in a cookie. For pages of the server. */
  signIn(by: { readonly code: string } | { readonly token: string }): Promise<SignedIn>;
  /** Ends this browser's session. */
  signOut(): Promise<void>;
  /** Creates a link that signs one browser in, once. For operators. */
  createSignInCode(options?: { readonly as?: string; readonly expires_in_sec?: number }): Promise<SignInLink>;
  /** Lists the browsers that are signed in: your own, or all for operators. */
  sessions(page?: { readonly cursor?: string; readonly limit?: number }): Promise<SessionPage>;
  /** Ends a session: your own, or any for operators. */
  endSession(sessionId: string): Promise<void>;
  /** Reads the administrative journal, by seq. For operators. */
  audit(page?: { readonly after?: number; readonly limit?: number }): Promise<AuditPage>;
  /** Sends any other request and returns the response as it is. */
  request(method: string, path: string, body?: Json): Promise<Response>;
}

// The optional parts of a request.
interface Sent {
  // Sent as JSON.
  readonly body?: object | Json | undefined;
  readonly signal?: AbortSignal | undefined;
}

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
// Pauses of a quarter, a half, one, two, four and eight seconds: enough for a server to restart.
const MOST_TRIES = 7;
// The server sends a comment three times as often.
const SILENCE_MS = 45_000;

/** Creates a client. It connects only when it is used. */
export function createClient({ url, token, fetch: send = fetch, wait = pause }: ClientOptions): ParleyClient {
  const base = url.replace(/\/+$/, '');
  const credentials: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };

  async function request(method: string, path: string, { body, signal }: Sent = {}): Promise<Response> {
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
      const reason = reasonOf(cause);
      throw base === ''
        ? clientError('UNREACHABLE.no_connection', { reason }, { cause })
        : clientError('UNREACHABLE.no_connection_to', { url: base, reason }, { cause });
    }
    if (!response.ok) throw await refusalOf(response);
    return response;
  }

  async function call<T>(method: string, path: string, sent?: Sent): Promise<T> {
    const response = await request(method, path, sent);
    if (response.status === 204) return undefined as T;
    try {
      return (await response.json()) as T;
    } catch (cause) {
      // Another program sent a text that is not JSON. Any other error means that the response is incomplete.
      const { status } = response;
      if (cause instanceof SyntaxError)
        throw clientError('INTERNAL.response_not_json', { method, path }, { status, cause });
      throw clientError('UNREACHABLE.cut_off', { reason: reasonOf(cause) }, { cause });
    }
  }

  // Retries a request that is safe to repeat: it only reads, or has an idempotency key.
  function callSafely<T>(method: string, path: string, sent: Sent = {}): Promise<T> {
    return safely(() => call<T>(method, path, sent), sent.signal);
  }

  async function safely<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    for (let tries = 1, pauseMs = FIRST_PAUSE_MS; ; tries += 1, pauseMs *= 2) {
      try {
        return await send();
      } catch (error) {
        if (!(error instanceof ParleyError && error.passing) || tries === MOST_TRIES || signal?.aborted) throw error;
      }
      await wait(pauseMs, signal);
    }
  }

  // Yields the frames of one connection after another, in groups, until the reader stops.
  async function* connect(
    pathOf: () => string,
    { signal, onReconnect, onOpen }: ChangeOptions,
  ): AsyncGenerator<readonly Frame[], void> {
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      const silence = new Silence(signal);
      try {
        const response = await request('GET', pathOf(), { signal: silence.signal });
        onOpen?.();
        if (response.body)
          for await (const frames of readFrames(response.body, () => silence.heard())) {
            pauseMs = FIRST_PAUSE_MS;
            yield frames;
          }
        throw clientError('UNREACHABLE.closed', {});
      } catch (error) {
        if (signal?.aborted) return;
        const failure =
          error instanceof ParleyError
            ? error
            : clientError('UNREACHABLE.lost', { reason: reasonOf(error) }, { cause: error });
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
        // A damaged part of the journal: the stream continues after it.
        if (event === 'damaged') seq = Math.max(seq, (JSON.parse(data) as { to_seq: number }).to_seq);
        if (event !== 'message') continue;
        const received = JSON.parse(data) as E;
        if (received.seq <= seq) continue;
        if (received.seq !== seq + 1) throw clientError('INTERNAL.event_order', { seq: received.seq, last: seq });
        seq = received.seq;
        yield received;
      }
    }
  }

  // Always with its progress: a response that sends nothing for minutes is cut off on the way.
  async function verify(runId: string, { onProgress, onWaiting }: VerifyOptions): Promise<Verification> {
    const path = `/v1/runs/${encodeURIComponent(runId)}/verify?progress=true`;
    const { body } = await safely(() => request('GET', path));
    let rest = '';
    const decoder = new TextDecoder();
    const reader = body?.getReader();
    const next = () =>
      reader?.read().catch((cause: unknown) => {
        throw new ParleyError('UNREACHABLE', `the answer of the server broke off: ${reasonOf(cause)}`, { cause });
      });
    for (let read = await next(); read?.value; read = await next()) {
      const lines = (rest + decoder.decode(read.value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        const { type, ...message } = JSON.parse(line) as { readonly type: string };
        if (type === 'waiting') onWaiting?.((message as { readonly checks_before: number }).checks_before);
        if (type === 'progress') onProgress?.(message as VerifyProgress);
        if (type === 'result') return message as Verification;
        if (type === 'error') throw errorOf(message as ErrorBody);
      }
    }
    throw clientError('UNREACHABLE.no_result', {});
  }

  return {
    create: (run) => {
      const key = run.request_id ?? newKey();
      return key === undefined
        ? call('POST', '/v1/runs', { body: run })
        : callSafely('POST', '/v1/runs', { body: { ...run, request_id: key } });
    },
    get: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}`),
    list: (filter = {}) => callSafely('GET', `/v1/runs${queryOf({ ...filter })}`),
    cancel: (runId) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/cancel`),
    retry: (runId, again = {}) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/retry`, { body: again }),
    continueFrom: (runId, next) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/continue`, { body: next }),
    fork: (runId, next) => call('POST', `/v1/runs/${encodeURIComponent(runId)}/fork`, { body: next }),
    delete: (runId) => call('DELETE', `/v1/runs/${encodeURIComponent(runId)}`),
    reply: (runId, reply, { signal } = {}) => {
      const path = `/v1/runs/${encodeURIComponent(runId)}/interaction/reply`;
      const key = reply.idempotency_key ?? newKey();
      return key === undefined
        ? call('POST', path, { body: reply, signal })
        : callSafely('POST', path, { body: { ...reply, idempotency_key: key }, signal });
    },
    result: (runId) => callSafely('GET', `/v1/runs/${encodeURIComponent(runId)}/result`),
    logs: async (runId, part = {}) =>
      new Uint8Array(
        await (await request('GET', `/v1/runs/${encodeURIComponent(runId)}/logs${queryOf({ ...part })}`)).arrayBuffer(),
      ),
    verify: (runId, options = {}) => verify(runId, options),
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
    // Not repeated: a sign-in code works once, and the first request may have used it.
    signIn: (by) => call('POST', '/v1/sign-in', { body: by }),
    signOut: () => call('POST', '/v1/sign-out'),
    createSignInCode: (options = {}) => call('POST', '/v1/sign-in-codes', { body: options }),
    sessions: (page = {}) => callSafely('GET', `/v1/sessions${queryOf({ ...page })}`),
    endSession: (sessionId) => call('DELETE', `/v1/sessions/${encodeURIComponent(sessionId)}`),
    audit: (page = {}) => callSafely('GET', `/v1/audit${queryOf({ ...page })}`),
    request: (method, path, body) => request(method, path, { body }),
  };
}

// Ends a connection on which nothing was received for too long, or when the reader stops.
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

interface ErrorBody {
  readonly error?: {
    readonly code?: string;
    readonly message?: string;
    readonly hint?: string;
    readonly values?: Values;
    readonly details?: JsonObject;
  };
}

async function refusalOf(response: Response): Promise<ParleyError> {
  return errorOf((await response.json().catch(() => null)) as ErrorBody | null, response.status);
}

function errorOf(body: ErrorBody | null, status = 0): ParleyError {
  const { code, message } = body?.error ?? {};
  // Another program answered.
  if (code === undefined || message === undefined)
    return clientError('INTERNAL.response_status', { status }, { status });
  // Only known members: another server in between may send others.
  const { hint, values, details } = body?.error ?? {};
  return new ParleyError(code, message, { status, hint, values, details });
}

// Undefined in a page that was loaded over plain HTTP from another machine, where randomUUID does not exist. Calls
// without a key are not repeated.
function newKey(): string | undefined {
  return globalThis.crypto?.randomUUID?.();
}

// fetch reports the reason only as the cause of its error.
function reasonOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return cause instanceof Error ? cause.message : String(cause);
}

function queryOf(filter: Readonly<Record<string, string | number | boolean | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(filter)) if (value !== undefined) query.set(name, String(value));
  return query.size === 0 ? '' : `?${query.toString()}`;
}
