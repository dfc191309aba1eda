// Codex as an engine that stays: the app-server of one run, with one thread.
import { ASK_INPUT, ASK_TOOL } from '../ask/ask-tool.js';
import { codexHome } from '../engines/codex/home.js';
import { SANDBOX } from '../engines/codex/command.js';
import type { NativeRequest } from '../engines/native-request.js';
import type { Conversation, Resident, ResidentStart } from '../engines/resident.js';
import { readMessage } from '../jsonrpc/read-message.js';
import type { Json } from '../kernel/json.js';
import { readStartTime } from '../process/process-table.js';
import type { CodexAppServer } from './codex-app-server.js';
import { startAppServer, type Surroundings } from './start-app-server.js';

// The one agent of a run; its recording is the log of the run.
export const INSTANCE = 'main';
const NOT_ASKED = -32601;
// MCP servers that the user has set up may be slow to start.
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
      // A run that goes on with the session of an ended one lives in its home.
      takesHomeOver: true,
      env,
      mark,
      ...(passesOver === undefined ? {} : { passesOver }),
      signal,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      // The question tool is answered by whoever plays the run.
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
  readonly #server: CodexAppServer;
  #threadId: string | null = null;
  #turnId: string | null = null;

  constructor(server: CodexAppServer) {
    this.#server = server;
    this.pid = server.pid;
    this.startTime = readStartTime(server.pid);
    this.from = server.recordedFrom;
    this.ended = server.closed.then(({ code, signal, error }) => ({ exit: { code, signal }, error }));
  }

  get isAlive(): boolean {
    return this.#server.isOpen;
  }

  async converse(conversation: Conversation, prompt: string): Promise<void> {
    this.#threadId ??= await this.#open(conversation);
    const { turn } = await this.#server.turns.start(this.#threadId, prompt);
    this.#turnId = turn.id;
  }

  async *lines(from: number, signal: AbortSignal): AsyncGenerator<Buffer, void, undefined> {
    for await (const { bytes } of this.#server.events({ from, signal })) yield bytes;
  }

  waitsFor({ id }: NativeRequest): boolean {
    return this.#server.openRequests().some((open) => open.id === id);
  }

  answer({ id }: NativeRequest, result: object): void {
    this.#server.respond(id, result);
  }

  refuse({ id }: NativeRequest, reason: string): void {
    this.#server.refuse(id, NOT_ASKED, reason);
  }

  refuseLine(line: Buffer): void {
    const message = readMessage(line.toString('utf8'));
    if (message.type === 'request' && this.#server.openRequests().some(({ id }) => id === message.id))
      this.#server.refuse(message.id, NOT_ASKED, 'it is too long to be asked');
  }

  async forgets(request: NativeRequest, signal: AbortSignal): Promise<void> {
    if (!this.waitsFor(request)) return;
    for await (const _event of this.#server.events({ signal })) if (!this.waitsFor(request)) return;
  }

  async tell(text: string): Promise<void> {
    await this.#server.request('turn/steer', {
      threadId: this.#threadId,
      expectedTurnId: this.#turnId,
      input: [{ type: 'text', text, text_elements: [] }],
    });
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
    // The thread keeps its tools.
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
