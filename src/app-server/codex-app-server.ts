// One running `codex app-server`: its process, the conversation with it, and what is written down of both.
import { asObject, type Json } from '../kernel/json.js';
import type { Clock } from '../kernel/clock.js';
import { JsonRpcPeer, type AskedRequest } from '../jsonrpc/peer.js';
import type { RequestId } from '../jsonrpc/read-message.js';
import type { Timers } from '../process/timers.js';
import type { AgentFolder, RecordingPaths } from './agent-folder.js';
import { AppServerError } from './app-server-error.js';
import type { CodexHome } from './codex-home.js';
import { EventFeed, type EventOptions, type ServerEvent } from './event-feed.js';
import type { InitializeParams, InitializeResponse } from './protocol.js';
import { Recording } from './recording.js';
import { ServerProcess, type ServerEnd } from './server-process.js';
import { SessionFile } from './session-file.js';
import { ThreadBook } from './thread-book.js';
import { createThreads, type ServerParts, type Threads } from './threads.js';
import { createTurns, type Turns } from './turns.js';

export interface CodexAppServer {
  readonly pid: number;
  readonly codexHome: string;
  readonly recording: RecordingPaths;
  // Where in events.jsonl this process began. A request before it was one of an earlier process, whose ids come again.
  readonly recordedFrom: number;
  // False as soon as its process is known to have ended, or is being ended.
  readonly isOpen: boolean;
  // What the server told of itself.
  readonly info: InitializeResponse;
  // The thread of session.json, for `threads.resume`; null before the first turn of this instance.
  readonly sessionThreadId: string | null;
  readonly threads: Threads;
  readonly turns: Turns;
  // Any other method, by name.
  request(method: string, params?: object, timeoutMs?: number): Promise<Json>;
  // Each line of the server from now on, for any number of readers; ends with the server.
  events(options?: EventOptions): AsyncGenerator<ServerEvent, void, undefined>;
  // The requests of the server that wait for an answer, the oldest first.
  openRequests(): readonly AskedRequest[];
  // Answers a request of the server, once. Throws when it does not wait any more. Given the event, also when that is of
  // an earlier process; an id alone cannot tell.
  respond(request: RequestId | ServerEvent, result: unknown): void;
  refuse(request: RequestId | ServerEvent, code: number, message: string): void;
  // Resolves when the process and all it has started are gone.
  close(): Promise<ServerEnd>;
  readonly closed: Promise<ServerEnd>;
}

export interface Launch {
  readonly instance: string;
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly mark: string;
  readonly folder: AgentFolder;
  readonly home: CodexHome;
  readonly initialize: InitializeParams;
  readonly timeoutMs: number;
  // Methods of the server that nobody here answers: refused at once.
  readonly unhandled: ReadonlySet<string>;
  readonly signal?: AbortSignal;
  readonly clock: Clock;
  readonly timers: Timers;
  // Called when nothing of it is left, before `closed` resolves.
  readonly ended: () => void;
}

const LF = 0x0a;
const METHOD_NOT_FOUND = -32601;

export async function launch(options: Launch): Promise<CodexAppServer> {
  const { folder, home, timers, timeoutMs } = options;
  const book = new ThreadBook(timers);
  // First of all: without it, what a thread may do is not known.
  const session = new SessionFile(folder, { instance: options.instance, codexHome: home.path }, options.clock);
  const recording = await Recording.open(folder.recording);
  const recordedFrom = recording.events.size;
  const feed = new EventFeed(folder.recording.events, recordedFrom);
  // Requests of the server and lines that cannot be read are heard of by whoever reads the events.
  const peer = new JsonRpcPeer({
    write: (line) => child.write(line),
    timers,
    timeoutMs,
    handlers: { notified, asked, unreadable: () => {} },
  });

  function notified(method: string, params: Json | undefined): void {
    book.notice(method, params);
    const { threadId, requestId } = asObject(params) ?? {};
    // Answered by an interrupt: the server would ignore what comes now.
    if (method === 'serverRequest/resolved' && (typeof requestId === 'string' || typeof requestId === 'number'))
      peer.withdraw(requestId);
    const settings = typeof threadId === 'string' ? book.settingsOf(threadId) : undefined;
    if (method === 'turn/started' && settings && !book.isEphemeral(threadId as string))
      session.keep(threadId as string, settings, true);
  }

  function asked(id: RequestId, method: string): void {
    if (options.unhandled.has(method)) peer.refuse(id, METHOD_NOT_FOUND, `${method} is not handled`);
  }

  function idToAnswer(request: RequestId | ServerEvent): RequestId {
    if (typeof request !== 'object') return request;
    if (request.type !== 'request')
      throw new AppServerError('bad_options', `what is to be answered is a ${request.type}, not a request`);
    const { id, raw, from } = request;
    const isOurs = from >= recordedFrom && peer.asked.every((open) => open.id !== id || open.raw === raw);
    if (!isOurs)
      throw new AppServerError('old_request', `the request ${JSON.stringify(id)} was not asked by this process`);
    return id;
  }

  function said(chunk: Buffer): void {
    peer.receive(chunk);
    const last = chunk.lastIndexOf(LF);
    if (last >= 0) feed.publish(recording.events.size - (chunk.length - last - 1));
  }

  const child = await ServerProcess.launch(
    { argv: options.argv, cwd: options.cwd, env: options.env, mark: options.mark },
    recording,
    { said },
    timers,
  );

  const closed = child.done.then(async (end) => {
    peer.end(`codex app-server is gone (${end.error?.message ?? `exit code ${end.code}, signal ${end.signal}`})`);
    book.end();
    // Whoever waited for an answer hears of it first and stores what follows: after the end of this, the folder is
    // another's.
    await new Promise((resolve) => setImmediate(resolve));
    feed.end(recording.events.size);
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
    events: (at) => feed.read(at),
    openRequests: () => peer.asked,
    respond: (asked, result) => peer.respond(idToAnswer(asked), result),
    refuse: (asked, code, message) => peer.refuse(idToAnswer(asked), code, message),
    close,
    closed,
  };
}
