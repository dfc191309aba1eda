// The turns of one server: one at a time in each thread, and an interrupt that ends what the turn has started.
import { isDeepStrictEqual } from 'node:util';
import { JsonRpcError, PeerEndedError, RequestTimeoutError } from '../jsonrpc/errors.js';
import { asObject, asString } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { Turn, TurnStartParams, TurnStartResponse, UserInput } from './protocol.js';
import { resolveFolder } from './resolve-folder.js';
import { paramsOfTurn, settingsOfTurn, stricterOf, type ThreadSettings } from './thread-settings.js';
import type { ServerParts } from './threads.js';

export interface Turns {
  // Resolves when the turn has its id; the events tell how it goes. Refused while another turn of the thread is on.
  start(
    threadId: string,
    input: string | readonly UserInput[],
    params?: Omit<TurnStartParams, 'threadId' | 'input'>,
  ): Promise<TurnStartResponse>;
  // Resolves when the turn has ended, however the server answers, and its commands are gone; 'none': no turn was on.
  // Fails when it has not ended in time, or when none has begun that still may.
  interrupt(threadId: string): Promise<'ended' | 'none'>;
}

export function createTurns({ request, book, session, home, cwd, timeoutMs }: ServerParts): Turns {
  return {
    async start(threadId, input, params = {}) {
      book.ask(threadId);
      const before = book.settingsOf(threadId);
      try {
        const given = params.cwd == null ? params : { ...params, cwd: resolveFolder(params.cwd, cwd) };
        const after = before && settingsOfTurn(before, given);
        const folder = after?.cwd ?? given.cwd;
        if (folder != null) home.admit(folder);
        if (before && after) adopt(threadId, before, after);
        const result = await request('turn/start', {
          ...given,
          ...(after ? paramsOfTurn(after) : {}),
          threadId,
          input: toInput(input),
        });
        const turnId = asString(asObject(asObject(result)?.turn)?.id);
        if (turnId === undefined)
          throw new AppServerError('unexpected_answer', 'turn/start was answered without a turn');
        book.given(threadId, turnId);
        return result as unknown as TurnStartResponse;
      } catch (error) {
        doubt(threadId, before, error);
        throw error;
      }
    },
    async interrupt(threadId) {
      if (!book.turnOf(threadId)) return 'none';
      // Before turn/started the server refuses, and the turn runs on.
      await book.until(() => book.turnOf(threadId)?.stage === 'on' || !book.turnOf(threadId), timeoutMs);
      const turn = book.turnOf(threadId);
      if (turn && turn.id === null)
        throw new AppServerError(
          'turn_not_ended',
          `turn/start in ${threadId} was not answered: a turn may still begin`,
        );
      if (turn && turn.id !== null) await end(threadId, turn.id);
      await cleanTerminals(threadId);
      return turn ? 'ended' : 'none';
    },
  };

  // Whatever becomes of this process, what is stored allows no more than either.
  function adopt(threadId: string, before: ThreadSettings, after: ThreadSettings): void {
    book.open(threadId, after);
    store(threadId, stricterOf(before, after));
  }

  // Refused, it has changed nothing. Else it may have, and the turn may begin.
  function doubt(threadId: string, before: ThreadSettings | undefined, error: unknown): void {
    const isUnknown =
      error instanceof RequestTimeoutError ||
      error instanceof PeerEndedError ||
      (error instanceof AppServerError && error.code === 'unexpected_answer');
    if (isUnknown) book.unanswered(threadId);
    else book.refused(threadId);
    const after = book.settingsOf(threadId);
    if (!before || !after) return;
    const settings = isUnknown ? stricterOf(before, after) : before;
    book.open(threadId, settings);
    store(threadId, settings);
  }

  function store(threadId: string, settings: ThreadSettings): void {
    const stored = session.settingsOf(threadId);
    if (stored && !isDeepStrictEqual(stored, settings)) session.keep(threadId, settings, false);
  }

  async function end(threadId: string, turnId: string): Promise<void> {
    const isOver = (): boolean => book.turnOf(threadId)?.id !== turnId;
    // The answer is not waited for: when the turn ends by itself in the same moment, there may be none.
    const refused = request('turn/interrupt', { threadId, turnId }).then(
      () => null,
      async (error: unknown) => {
        if (error instanceof JsonRpcError && !isOver()) await look(threadId, turnId);
        return error;
      },
    );
    if (await book.until(isOver, timeoutMs)) return;
    throw new AppServerError('turn_not_ended', `the turn ${turnId} did not end within ${timeoutMs} ms`, {
      cause: await refused,
    });
  }

  // Whether the server, which knows of no such turn, has it as ended.
  async function look(threadId: string, turnId: string): Promise<void> {
    const result = await request('thread/turns/list', {
      threadId,
      limit: 10,
      sortDirection: 'desc',
      itemsView: 'notLoaded',
    }).catch(() => null);
    const turns = (asObject(result)?.data ?? []) as unknown as readonly Turn[];
    const status = turns.find(({ id }) => id === turnId)?.status;
    if (status !== undefined && status !== 'inProgress') book.ended(threadId, turnId);
  }

  // A command that runs would outlive its turn. Servers that cannot be told so keep it until they are closed.
  async function cleanTerminals(threadId: string): Promise<void> {
    try {
      await request('thread/backgroundTerminals/clean', { threadId });
    } catch (error) {
      if (!(error instanceof JsonRpcError || error instanceof RequestTimeoutError)) throw error;
    }
  }
}

function toInput(input: string | readonly UserInput[]): readonly UserInput[] {
  return typeof input === 'string' ? [{ type: 'text', text: input, text_elements: [] }] : input;
}
