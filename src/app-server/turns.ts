// The turns of one server: one at a time in each thread, and an interrupt that ends what the turn has started.
import { JsonRpcError, RequestTimeoutError } from '../jsonrpc/errors.js';
import { asObject, asString } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { SandboxMode, TurnStartParams, TurnStartResponse, UserInput } from './protocol.js';
import type { ThreadSettings } from './session-file.js';
import type { ServerParts } from './threads.js';

export interface Turns {
  // Resolves when the turn has its id; the events tell how it goes. Refused while another turn of the thread is on.
  start(threadId: string, input: string | readonly UserInput[], params?: Omit<TurnStartParams, 'threadId' | 'input'>): Promise<TurnStartResponse>;
  // Resolves when the turn has ended, however the server answers, and its commands are gone; 'none': no turn was on. Fails when
  // it has not ended in time.
  interrupt(threadId: string): Promise<'ended' | 'none'>;
}

const SANDBOXES: Readonly<Record<string, SandboxMode>> = { readOnly: 'read-only', workspaceWrite: 'workspace-write', dangerFullAccess: 'danger-full-access' };

export function createTurns({ request, book, home, timeoutMs }: ServerParts): Turns {
  return {
    async start(threadId, input, params = {}) {
      book.ask(threadId);
      const before = book.settingsOf(threadId);
      try {
        if (before) adopt(threadId, before, params);
        const result = await request('turn/start', { ...params, threadId, input: toInput(input) });
        const turnId = asString(asObject(asObject(result)?.turn)?.id);
        if (turnId === undefined) throw new AppServerError('unexpected_answer', 'turn/start was answered without a turn');
        book.given(threadId, turnId);
        return result as unknown as TurnStartResponse;
      } catch (error) {
        if (before) book.open(threadId, before);
        book.notGiven(threadId);
        throw error;
      }
    },
    async interrupt(threadId) {
      if (!book.turnOf(threadId)) return 'none';
      // Before turn/started the server refuses, and the turn runs on.
      await book.until(() => book.turnOf(threadId)?.stage === 'on' || !book.turnOf(threadId), timeoutMs);
      const turn = book.turnOf(threadId);
      if (turn) await end(threadId, turn.id);
      await cleanTerminals(threadId);
      return turn ? 'ended' : 'none';
    },
  };

  // What is given for a turn counts for those after it, and so for a resume.
  function adopt(threadId: string, before: ThreadSettings, { cwd, approvalPolicy, sandboxPolicy }: Partial<TurnStartParams>): void {
    const settings = { cwd: cwd ?? before.cwd, approvalPolicy: approvalPolicy ?? before.approvalPolicy, sandbox: SANDBOXES[sandboxPolicy?.type ?? ''] ?? before.sandbox };
    home.admit(settings.cwd, settings.sandbox);
    book.open(threadId, settings);
  }

  async function end(threadId: string, turnId: string | null): Promise<void> {
    const isOver = (): boolean => book.turnOf(threadId)?.id !== turnId;
    // The answer is not waited for: when the turn ends by itself in the same moment, there may be none.
    const refused = request('turn/interrupt', { threadId, turnId }).then(() => null, (error: unknown) => error);
    if (await book.until(isOver, timeoutMs)) return;
    throw new AppServerError('turn_not_ended', `the turn ${turnId} did not end within ${timeoutMs} ms`, { cause: await refused });
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
