// One running `codex app-server`: its process, the conversation with it, and the recording of both. Each line of the
// server is parsed once, after it was recorded, and goes to the peer first, then to the readers of the feed.
import { asObject, type Json } from '../kernel/json.js';
import type { Clock } from '../kernel/clock.js';
import { JsonRpcPeer, type AskedRequest } from '../jsonrpc/peer.js';
import type { RequestId } from '../jsonrpc/read-message.js';
import { LineReader } from '../jsonrpc/received-line.js';
import type { RequestLedger } from '../jsonrpc/request-ledger.js';
import { LineFeed } from '../process/line-feed.js';
import { Recording, type RecordingPaths } from '../process/recording.js';
import { ServerProcess, type ServerEnd } from '../process/server-process.js';
import type { Timers } from '../process/timers.js';
import type { AgentFolder } from './agent-folder.js';
import { AppServerError } from './app-server-error.js';
import type { AgentHome } from './agent-home.js';
import type { InitializeParams, InitializeResponse } from './protocol.js';
import { readEvents, type EventOptions, type ServerEvent } from './server-event.js';
import { SessionFile } from './session-file.js';
import { ThreadBook } from './thread-book.js';
import { createThreads, type ServerParts, type Threads } from './threads.js';
import { createTurns, type Turns } from './turns.js';

/** A running `codex app-server`. */
export interface CodexAppServer {
  /** The process id. */
  readonly pid: number;
  /** The folder that Codex uses as `CODEX_HOME`. */
  readonly codexHome: string;
  /** The files in which the lines of both sides are recorded. */
  readonly recording: RecordingPaths;
  /**
   * The offset in events.jsonl where this process began. Requests before it came from an earlier process, which used
   * the same ids.
   */
  readonly recordedFrom: number;
  /** False as soon as the process has exited or is being ended. */
  readonly isOpen: boolean;
  /** The response to `initialize`. */
  readonly info: InitializeResponse;
  /** The thread of session.json, for `threads.resume`; null before the first turn of this instance. */
  readonly sessionThreadId: string | null;
  /** Starts, resumes, forks and lists threads. */
  readonly threads: Threads;
  /** Starts, steers and interrupts turns. */
  readonly turns: Turns;
  /** Sends any other method and resolves to its result. */
  request(method: string, params?: object, timeoutMs?: number): Promise<Json>;
  /** Each line of the server from now on, for any number of readers; ends with the server. */
  events(options?: EventOptions): AsyncGenerator<ServerEvent, void, undefined>;
  /** The requests of the server that wait for a response, the oldest first. */
  openRequests(): readonly AskedRequest[];
  /**
   * Responds to a request of the server, once. Throws when the server no longer waits for it. An event also identifies
   * the process that sent it; an id alone does not.
   */
  respond(request: RequestId | ServerEvent, result: unknown): void;
  /** Responds with an error. */
  refuse(request: RequestId | ServerEvent, code: number, message: string): void;
  /** Ends the server. Resolves when the process and everything it started have exited. */
  close(): Promise<ServerEnd>;
  /** Resolves when the process and everything it started have exited, for whatever reason. */
  readonly closed: Promise<ServerEnd>;
}

// The server with its internal parts, for the engine in this repository.
export interface LaunchedServer extends CodexAppServer {
  readonly startTime: string;
  readonly feed: LineFeed;
  readonly ledger: RequestLedger;
}

export interface Launch {
  readonly instance: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly mark: string;
  readonly folder: AgentFolder;
  readonly home: AgentHome;
  readonly initialize: InitializeParams;
  readonly timeoutMs: number;
  // Methods of the server that are refused immediately.
  readonly unhandled: ReadonlySet<string>;
  readonly signal?: AbortSignal;
  readonly clock: Clock;
  readonly timers: Timers;
  // Called when every process has exited, before `closed` resolves.
  readonly ended: () => void;
}

const METHOD_NOT_FOUND = -32601;

export async function launch(options: Launch): Promise<LaunchedServer> {
  const { folder, home, timers, timeoutMs } = options;
  const book = new ThreadBook(timers);
  // Read before the process starts: the file holds the permissions of each thread.
  const session = new SessionFile(folder, { instance: options.instance, codexHome: home.path }, options.clock);
  const recording = await Recording.open(folder.recording);
  const recordedFrom = recording.events.bytes;
  // Readers of the feed handle unreadable lines.
  const peer = new JsonRpcPeer({
    write: (line) => {
      if (!child.isOpen) throw new AppServerError('closed', 'codex app-server is closed');
      child.write(line);
    },
    timers,
    timeoutMs,
    handlers: { notified, asked, unreadable: () => {} },
  });
  const feed = new LineFeed({
    path: folder.recording.events,
    published: recordedFrom,
    recall: (line) => peer.ledger.recall(line),
  });

  function notified(method: string, params: Json | undefined): void {
    book.notice(method, params);
    const { threadId, requestId } = asObject(params) ?? {};
    // An interrupt closed the request: the server would ignore a response.
    if (method === 'serverRequest/resolved' && (typeof requestId === 'string' || typeof requestId === 'number'))
      peer.withdraw(requestId);
    const settings = typeof threadId === 'string' ? book.settingsOf(threadId) : undefined;
    if (method === 'turn/started' && settings && !book.isEphemeral(threadId as string))
      session.keepAsCurrent(threadId as string, settings);
  }

  function asked(id: RequestId, method: string): void {
    if (options.unhandled.has(method)) peer.refuse(id, METHOD_NOT_FOUND, `${method} is not handled`);
  }

  function idToAnswer(request: RequestId | ServerEvent): RequestId {
    if (typeof request !== 'object') return request;
    if (request.type !== 'request')
      throw new AppServerError('bad_options', `only a request can be answered, not a ${request.type}`);
    const { id, from, raw } = request;
    const open = peer.ledger.find(id);
    if (from < recordedFrom || (open && (open.line.from !== from || open.line.text !== raw)))
      throw new AppServerError('old_request', `the request ${JSON.stringify(id)} was not asked by this process`);
    return id;
  }

  const lines = new LineReader((line) => {
    peer.receive(line);
    feed.publish(line);
  }, recordedFrom);

  const launched = await ServerProcess.launch({
    command: { argv: options.argv, cwd: options.cwd, env: options.env, mark: options.mark },
    recording,
    timers,
    onOutput: (chunk) => {
      lines.push(chunk);
      return feed.room();
    },
  });
  if (!launched.started) {
    const isMissing = launched.reason === 'not_found' || launched.reason === 'not_executable';
    throw new AppServerError(
      isMissing ? 'codex_not_found' : 'not_started',
      `codex app-server could not be started: ${launched.message}`,
    );
  }
  const child = launched.server;

  const closed = child.done.then(async (end) => {
    lines.end();
    peer.end(`codex app-server is gone (${end.error?.message ?? `exit code ${end.code}, signal ${end.signal}`})`);
    book.end();
    // Callers whose requests failed may still write session.json. Give them one event-loop tick: after `ended`, another
    // owner may have the folder.
    await new Promise((resolve) => setImmediate(resolve));
    feed.end(recording.events.bytes);
    options.ended();
    return end;
  });
  const close = (): Promise<ServerEnd> => {
    child.close();
    return closed;
  };

  const giveUp = (): void => child.force();
  options.signal?.addEventListener('abort', giveUp, { once: true });
  if (options.signal?.aborted) giveUp();
  const info = await initialize()
    .finally(() => options.signal?.removeEventListener('abort', giveUp))
    .catch(async (error: unknown) => {
      await close();
      throw new AppServerError(
        'not_started',
        `codex app-server did not start: ${error instanceof Error ? error.message : String(error)} ` +
          `(${folder.recording.stderr})`,
        { cause: error },
      );
    });

  async function initialize(): Promise<InitializeResponse> {
    const result = await peer.request('initialize', options.initialize);
    if (typeof asObject(result)?.userAgent !== 'string')
      throw new AppServerError('unexpected_answer', 'initialize was not answered as expected');
    peer.notify('initialized');
    return result as unknown as InitializeResponse;
  }

  session.greeted(info.userAgent);
  const request = (method: string, params: object = {}, ms?: number): Promise<Json> => peer.request(method, params, ms);
  const parts: ServerParts = { request, book, session, home, cwd: options.cwd, timeoutMs };
  return {
    pid: child.pid,
    startTime: child.startTime,
    feed,
    ledger: peer.ledger,
    codexHome: home.path,
    recording: folder.recording,
    recordedFrom,
    get isOpen() {
      return child.isOpen;
    },
    info,
    get sessionThreadId() {
      return session.threadId;
    },
    threads: createThreads(parts),
    turns: createTurns(parts),
    request,
    events: (at) => readEvents(feed, at),
    openRequests: () => peer.asked,
    respond: (asked, result) => peer.respond(idToAnswer(asked), result),
    refuse: (asked, code, message) => peer.refuse(idToAnswer(asked), code, message),
    close,
    closed,
  };
}
