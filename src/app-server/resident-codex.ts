// Codex as a resident engine: the app-server of one run, with one thread.
import { ASK_INPUT, ASK_TOOL } from '../ask/ask-tool.js';
import { codexHome } from '../engines/codex/home.js';
import { SANDBOX } from '../engines/codex/command.js';
import type { NativeRequest } from '../engines/native-request.js';
import type { Conversation, Resident, ResidentStart } from '../engines/resident.js';
import type { ReceivedLine } from '../jsonrpc/received-line.js';
import type { Json } from '../kernel/json.js';
import type { LaunchedServer } from './codex-app-server.js';
import { startAppServer, type Surroundings } from './start-app-server.js';

// A run has one agent; its recording is the log of the run.
const INSTANCE = 'main';
const METHOD_NOT_FOUND = -32601;
// MCP servers of the user may be slow to start.
const REQUEST_TIMEOUT_MS = 60_000;
const TOOL = {
  type: 'function',
  name: ASK_TOOL,
  description:
    'Ask the person you work for. Use it when you need a decision, a fact or a permission that you cannot find ' +
    'yourself. The result of the call is the answer; it may take long.',
  inputSchema: ASK_INPUT,
} as const;

export async function openResidentCodex(
  { program, folder, home, cwd, env, mark, passesOver, signal }: ResidentStart,
  surroundings: Surroundings,
): Promise<Resident> {
  const server = await startAppServer(
    {
      instance: INSTANCE,
      taskDir: folder,
      cwd,
      codexBin: program[0] ?? '',
      codexHome: codexHome.environment(home)['CODEX_HOME'] ?? home,
      // A run that continues the session of an ended run uses the home of that run.
      takesHomeOver: true,
      env,
      mark,
      ...(passesOver === undefined ? {} : { passesOver }),
      signal,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      // item/tool/call is not refused: the turn responds to calls of the question tool.
      unhandled: ['currentTime/read', 'attestation/generate', 'account/chatgptAuthTokens/refresh'],
    },
    surroundings,
  );
  return new ResidentCodex(server);
}

class ResidentCodex implements Resident {
  readonly pid: number;
  readonly startTime: string;
  readonly from: number;
  readonly ended: Resident['ended'];
  readonly #server: LaunchedServer;
  #threadId: string | null = null;

  constructor(server: LaunchedServer) {
    this.#server = server;
    this.pid = server.pid;
    this.startTime = server.startTime;
    this.from = server.recordedFrom;
    this.ended = server.closed.then(({ code, signal, error }) => ({ exit: { code, signal }, error }));
  }

  get isAlive(): boolean {
    return this.#server.isOpen;
  }

  async converse(conversation: Conversation, prompt: string): Promise<void> {
    this.#threadId ??= await this.#open(conversation);
    await this.#server.turns.start(this.#threadId, prompt);
  }

  lines(from: number, signal?: AbortSignal): AsyncIterable<ReceivedLine> {
    return this.#server.feed.read({ from, paces: true, ...(signal ? { signal } : {}) });
  }

  waitsFor({ message }: NativeRequest): boolean {
    return this.#server.ledger.has(message);
  }

  answer({ message: { id } }: NativeRequest, result: object): void {
    this.#server.respond(id, result);
  }

  refuse({ message: { id } }: NativeRequest, reason: string): void {
    this.#server.refuse(id, METHOD_NOT_FOUND, reason);
  }

  forgets({ message }: NativeRequest, signal: AbortSignal): Promise<void> {
    return this.#server.ledger.closed(message, signal);
  }

  async tell(text: string): Promise<void> {
    if (this.#threadId !== null) await this.#server.turns.steer(this.#threadId, text);
  }

  async interrupt(): Promise<void> {
    if (this.#threadId !== null) await this.#server.turns.interrupt(this.#threadId);
  }

  close(): Resident['ended'] {
    void this.#server.close();
    return this.ended;
  }

  async #open({ session, copies = false, cwd, permission, mode, model }: Conversation): Promise<string> {
    const settings = {
      cwd,
      sandbox: SANDBOX[permission],
      approvalPolicy: mode === 'interactive' ? 'on-request' : 'never',
      approvalsReviewer: 'user',
      ...(model === undefined ? {} : { model }),
    } as const;
    const { threads } = this.#server;
    // A resumed or forked thread keeps its tools.
    const { thread } =
      session === null
        ? await threads.start({
            ...settings,
            ...(mode === 'interactive' ? { dynamicTools: [TOOL as unknown as Json] } : {}),
          })
        : copies
          ? await threads.fork(session, settings)
          : await threads.resume(session, settings);
    return thread.id;
  }
}
