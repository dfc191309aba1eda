// The turns of one server: one at a time in each thread. An interrupt also ends the commands that the turn started.
import { isDeepStrictEqual } from 'node:util';
import { JsonRpcError, PeerEndedError, RequestTimeoutError } from '../jsonrpc/errors.js';
import { asObject, asString } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { Turn, TurnStartParams, TurnStartResponse, UserInput } from './protocol.js';
import { resolveFolder } from '../files/resolve-folder.js';
import { paramsOfTurn, settingsOfTurn, stricterOf, type ThreadSettings } from './thread-settings.js';
import type { ServerParts } from './threads.js';

/** The turns of one server. */
export interface Turns {
  /** Resolves when the turn has its id; its progress is in the events. Refused while the thread has an active turn. */
  start(
    threadId: string,
    input: string | readonly UserInput[],
    params?: Omit<TurnStartParams, 'threadId' | 'input'>,
  ): Promise<TurnStartResponse>;
  /** Adds input to the active turn. Refused (`no_turn`) when the thread has none. */
  steer(threadId: string, input: string | readonly UserInput[]): Promise<void>;
  /**
   * Resolves when the turn has ended, whatever the server responds, and its commands have ended; 'none': no turn was
   * active. Fails when the turn has not ended in time, or when a requested turn may still begin.
   */
  interrupt(threadId: string): Promise<'ended' | 'none'>;
}

export function createTurns({ request, book, session, home, cwd, timeoutMs }: ServerParts): Turns {
  return {
    async start(threadId, input, params = {}) {
      book.ask(threadId);
      const before = book.settingsOf(threadId);
      try {
        const resolvedParams = params.cwd == null ? params : { ...params, cwd: resolveFolder(params.cwd, cwd) };
        const after = before && settingsOfTurn(before, resolvedParams);
        const folder = after?.cwd ?? resolvedParams.cwd;
        if (folder != null) home.admit(folder);
        if (before && after) adopt(threadId, before, after);
        const result = await request('turn/start', {
          ...resolvedParams,
          ...(after ? paramsOfTurn(after) : {}),
          threadId,
          input: toInput(input),
        });
        const turnId = asString(asObject(asObject(result)?.turn)?.id);
        if (turnId === undefined)
          throw new AppServerError('unexpected_answer', 'turn/start was answered without a turn');
        book.markAccepted(threadId, turnId);
        return result as unknown as TurnStartResponse;
      } catch (error) {
        doubt(threadId, before, error);
        throw error;
      }
    },
    async steer(threadId, input) {
      const turnId = book.turnOf(threadId)?.id ?? null;
      if (turnId === null) throw new AppServerError('no_turn', `the thread ${threadId} has no active turn`);
      await request('turn/steer', { threadId, expectedTurnId: turnId, input: toInput(input) });
    },
    async interrupt(threadId) {
      if (!book.turnOf(threadId)) return 'none';
      // Until turn/started the server refuses an interrupt, and the turn would continue.
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

  // Stores the stricter of both settings, so that a crash at any point allows no more than either of them.
  function adopt(threadId: string, before: ThreadSettings, after: ThreadSettings): void {
    book.open(threadId, after);
    store(threadId, stricterOf(before, after));
  }

  // A refused request changed nothing. After any other error the settings may have changed and the turn may start.
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
    if (stored && !isDeepStrictEqual(stored, settings)) session.keep(threadId, settings);
  }

  async function end(threadId: string, turnId: string): Promise<void> {
    const isOver = (): boolean => book.turnOf(threadId)?.id !== turnId;
    // Does not wait for the response: if the turn ends by itself at the same time, there may be none.
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

  // Checks in the list of turns whether the turn has ended: the server refused the interrupt because it does not know
  // the turn as active.
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

  // A running command would outlive its turn. Servers without this method keep it until they are closed.
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
