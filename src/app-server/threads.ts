// The threads of one server: list, start, resume, fork, rollback. The folder, the limits and the approval policy are
// sent each time a thread is opened: otherwise Codex would use the sandbox of its own settings, which may allow more.
import { JsonRpcError } from '../jsonrpc/errors.js';
import { asObject, type Json } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { AgentHome } from './agent-home.js';
import type {
  Thread,
  ThreadForkParams,
  ThreadForkResponse,
  ThreadListParams,
  ThreadListResponse,
  ThreadResumeParams,
  ThreadResumeResponse,
  ThreadStartParams,
  ThreadStartResponse,
  ThreadTurnsListResponse,
} from './protocol.js';
import { resolveFolder } from '../files/resolve-folder.js';
import type { SessionFile } from './session-file.js';
import type { ThreadBook } from './thread-book.js';
import { paramsToOpen, settingsToOpen, type ThreadSettings } from './thread-settings.js';

/** The threads of one server. */
export interface Threads {
  /** Lists the stored threads, a page at a time. */
  list(params?: ThreadListParams): Promise<ThreadListResponse>;
  /**
   * Starts a thread. Defaults: the sandbox is read-only, the approval policy is `on-request`, and the folder is that of
   * the instance.
   */
  start(params?: ThreadStartParams): Promise<ThreadStartResponse>;
  /** Opens a stored thread with its last settings; `params` override them. */
  resume(threadId: string, params?: Omit<ThreadResumeParams, 'threadId'>): Promise<ThreadResumeResponse>;
  /** Starts a new thread with a copy of the history of another. */
  fork(threadId: string, params?: Omit<ThreadForkParams, 'threadId'>): Promise<ThreadForkResponse>;
  /** Removes the last turns from the history. Changes that they made to files remain. */
  rollback(threadId: string, numTurns: number): Promise<Thread>;
}

export interface ServerParts {
  readonly request: (method: string, params: object) => Promise<Json>;
  readonly book: ThreadBook;
  readonly session: SessionFile;
  readonly home: AgentHome;
  readonly cwd: string;
  readonly timeoutMs: number;
}

const PAGE = 100;

export function createThreads({ request, book, session, home, cwd }: ServerParts): Threads {
  const knownOf = (threadId: string): ThreadSettings | undefined =>
    book.settingsOf(threadId) ?? session.settingsOf(threadId);

  async function open<Response>(
    method: string,
    params: Partial<ThreadStartParams> & { readonly threadId?: string },
  ): Promise<Response & { readonly thread: Thread }> {
    const asked = settingsToOpen(params, params.threadId === undefined ? undefined : knownOf(params.threadId), cwd);
    const settings = { ...asked, cwd: resolveFolder(asked.cwd, cwd) };
    home.admit(settings.cwd);
    const { sandbox: _, permissions: __, ...others } = params;
    const result = await request(method, { ...others, ...paramsToOpen(settings) });
    const threadId = idOf(result, method);
    book.open(threadId, settings);
    if (threadOf(result, method).ephemeral) book.noteEphemeral(threadId);
    else if (method === 'thread/start') session.begin(threadId, settings);
    return result as unknown as Response & { readonly thread: Thread };
  }

  async function revert(threadId: string, numTurns: number): Promise<Thread> {
    const beforeTurnId = await findTurn(threadId, numTurns);
    return threadOf(await request('thread/revert', { threadId, beforeTurnId }), 'thread/revert');
  }

  // Uses the older method. If the server does not know it either, rejects with the first error.
  async function rollBack(threadId: string, numTurns: number, first: JsonRpcError): Promise<Thread> {
    try {
      return threadOf(await request('thread/rollback', { threadId, numTurns }), 'thread/rollback');
    } catch (error) {
      throw isUnknownMethod(error) && !isUnknownMethod(first) ? first : error;
    }
  }

  // Returns the id of the turn at this position from the end.
  async function findTurn(threadId: string, numTurns: number): Promise<string> {
    let cursor: string | null = null;
    let seen = 0;
    do {
      const { data, nextCursor } = (await request('thread/turns/list', {
        threadId,
        limit: PAGE,
        sortDirection: 'desc',
        itemsView: 'notLoaded',
        ...(cursor === null ? {} : { cursor }),
      })) as unknown as ThreadTurnsListResponse;
      const turn = data[numTurns - 1 - seen];
      if (turn) return turn.id;
      seen += data.length;
      cursor = data.length === 0 ? null : (nextCursor ?? null);
    } while (cursor !== null);
    throw new AppServerError(
      'too_few_turns',
      `the thread ${threadId} has ${seen} turns, of which ${numTurns} cannot be taken back`,
    );
  }

  const threads: Threads = {
    list: async (params = {}) => (await request('thread/list', params)) as unknown as ThreadListResponse,
    start: (params = {}) => open<ThreadStartResponse>('thread/start', params),
    async resume(threadId, params = {}) {
      // The complete history in one line is deprecated and may be very long.
      const response = await open<ThreadResumeResponse>('thread/resume', {
        excludeTurns: true,
        ...params,
        threadId,
      } as ThreadResumeParams);
      if (response.thread.id !== threadId)
        throw new AppServerError('unexpected_answer', `thread/resume of ${threadId} has opened ${response.thread.id}`);
      return response;
    },
    async fork(threadId, params = {}) {
      const response = await open<ThreadForkResponse>('thread/fork', {
        excludeTurns: true,
        ...params,
        threadId,
      } as ThreadForkParams);
      const { id, ephemeral } = response.thread;
      if (id === threadId)
        throw new AppServerError('unexpected_answer', `thread/fork of ${threadId} has opened the same thread`);
      const settings = book.settingsOf(id);
      if (settings && !ephemeral) session.keep(id, settings);
      return response;
    },
    async rollback(threadId, numTurns) {
      if (!Number.isSafeInteger(numTurns) || numTurns < 1)
        throw new AppServerError(
          'bad_options',
          `the number of turns to take back is a whole number from 1, not ${numTurns}`,
        );
      return await book.hold(threadId, async () => {
        // Only a loaded thread can be changed.
        if (!book.settingsOf(threadId)) await threads.resume(threadId);
        try {
          return await revert(threadId, numTurns);
        } catch (error) {
          if (!isRefusedAsSuch(error)) throw error;
          return await rollBack(threadId, numTurns, error);
        }
      });
    },
  };
  return threads;
}

// The request itself was refused, so nothing changed and another method may be tried: Codex 0.150 knows thread/revert,
// but only for threads that are stored in pages. An internal error may occur after the change.
const REFUSED: ReadonlySet<number> = new Set([-32600, -32601, -32602]);

function isRefusedAsSuch(error: unknown): error is JsonRpcError {
  return error instanceof JsonRpcError && (REFUSED.has(error.code) || isUnknownMethod(error));
}

// Codex reports an unknown method like any other invalid request; only the message differs.
function isUnknownMethod(error: unknown): boolean {
  return error instanceof JsonRpcError && (error.code === -32601 || /unknown variant/.test(error.message));
}

function threadOf(result: Json, method: string): Thread {
  idOf(result, method);
  return (result as unknown as { thread: Thread }).thread;
}

function idOf(result: Json, method: string): string {
  const id = asObject(asObject(result)?.thread)?.id;
  if (typeof id !== 'string') throw new AppServerError('unexpected_answer', `${method} was answered without a thread`);
  return id;
}
