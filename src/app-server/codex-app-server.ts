// One running `codex app-server`: its process, the conversation with it, and what is written down of both.
import { asObject, type Json } from '../kernel/json.js';
import type { Clock } from '../kernel/clock.js';
import { JsonRpcPeer } from '../jsonrpc/peer.js';
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
  // Where in events.jsonl this process began.
  readonly recordedFrom: number;
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
  // Answers a request of the server, once. Throws when it does not wait any more.
  respond(requestId: RequestId, result: unknown): void;
  refuse(requestId: RequestId, code: number, message: string): void;
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
  readonly clock: Clock;
  readonly timers: Timers;
  // Called when nothing of it is left, before `closed` resolves.
  readonly ended: () => void;
}

const LF = 0x0a;

export async function launch(options: Launch): Promise<CodexAppServer> {
  const { folder, home, timers, timeoutMs } = options;
  const book = new ThreadBook(timers);
  let session: SessionFile | null = null;
  const recording = await Recording.open(folder.recording);
  const recordedFrom = recording.events.size;
  const feed = new EventFeed(folder.recording.events, recordedFrom);
  // Requests of the server and lines that cannot be read are heard of by whoever reads the events.
  const peer = new JsonRpcPeer({ write: (line) => child.write(line), timers, timeoutMs, handlers: { notified, asked: () => {}, unreadable: () => {} } });

  function notified(method: string, params: Json | undefined): void {
    book.notice(method, params);
    const { threadId, requestId } = asObject(params) ?? {};
    // Answered by an interrupt: the server would ignore what comes now.
    if (method === 'serverRequest/resolved' && (typeof requestId === 'string' || typeof requestId === 'number')) peer.withdraw(requestId);
    const settings = typeof threadId === 'string' ? book.settingsOf(threadId) : undefined;
    if (method === 'turn/started' && settings) session?.keep(threadId as string, settings, true);
  }

  function said(chunk: Buffer): void {
    peer.receive(chunk);
    const last = chunk.lastIndexOf(LF);
    if (last >= 0) feed.publish(recording.events.size - (chunk.length - last - 1));
  }

  const child = await ServerProcess.launch({ argv: options.argv, cwd: options.cwd, env: options.env, mark: options.mark }, recording, { said }, timers);

  const closed = child.done.then((end) => {
    peer.end(`codex app-server is gone (${end.error?.message ?? `exit code ${end.code}, signal ${end.signal}`})`);
    book.end();
    feed.end(recording.events.size);
    options.ended();
    return end;
  });
  const close = (): Promise<ServerEnd> => {
    child.close();
    return closed;
  };

  const info = await initialize().catch(async (error: unknown) => {
    await close();
    throw new AppServerError('not_started', `codex app-server did not start: ${error instanceof Error ? error.message : String(error)} (${folder.recording.stderr})`, { cause: error });
  });

  async function initialize(): Promise<InitializeResponse> {
    const result = await peer.request('initialize', options.initialize);
    if (typeof asObject(result)?.userAgent !== 'string') throw new AppServerError('unexpected_answer', 'initialize was not answered as expected');
    peer.notify('initialized');
    return result as unknown as InitializeResponse;
  }

  const kept = new SessionFile(folder, { instance: options.instance, codexHome: home.path, userAgent: info.userAgent }, options.clock);
  session = kept;
  const request = (method: string, params: object = {}, ms?: number): Promise<Json> => peer.request(method, params, ms);
  const parts: ServerParts = { request, book, session: kept, home, cwd: options.cwd, timeoutMs };
  return {
    pid: child.pid,
    codexHome: home.path,
    recording: folder.recording,
    recordedFrom,
    info,
    get sessionThreadId() {
      return kept.threadId;
    },
    threads: createThreads(parts),
    turns: createTurns(parts),
    request,
    events: (at) => feed.read(at),
    respond: (id, result) => peer.respond(id, result),
    refuse: (id, code, message) => peer.refuse(id, code, message),
    close,
    closed,
  };
}
