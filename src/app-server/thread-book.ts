// What is known of the threads of one server: with which settings they were opened, and whether a turn is on. A turn is
// `asked` (turn/start was sent) → `given` (it has an id) → `on` (turn/started has come) → gone (turn/completed has come).
// Only a turn that is on can be interrupted.
import type { Timers } from '../kernel/timers.js';
import { asObject, asString, type Json } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { ThreadSettings } from './session-file.js';

interface ActiveTurn {
  readonly stage: 'asked' | 'given' | 'on';
  readonly id: string | null;
}

export class ThreadBook {
  readonly #timers: Timers;
  readonly #opened = new Map<string, ThreadSettings>();
  readonly #active = new Map<string, ActiveTurn>();
  // The last one of each thread: the answer to turn/start may come after the end of the turn.
  readonly #completed = new Map<string, string>();
  readonly #looks = new Set<() => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  open(threadId: string, settings: ThreadSettings): void {
    this.#opened.set(threadId, settings);
  }

  settingsOf(threadId: string): ThreadSettings | undefined {
    return this.#opened.get(threadId);
  }

  turnOf(threadId: string): ActiveTurn | undefined {
    return this.#active.get(threadId);
  }

  // On a thread with an active turn, turn/start would steer that turn instead of beginning one.
  ask(threadId: string): void {
    this.refuseIfActive(threadId);
    this.#active.set(threadId, { stage: 'asked', id: null });
  }

  refuseIfActive(threadId: string): void {
    const turn = this.#active.get(threadId);
    if (turn) throw new AppServerError('turn_active', `the thread ${threadId} has an active turn${turn.id === null ? '' : ` (${turn.id})`}`);
  }

  given(threadId: string, turnId: string): void {
    if (this.#completed.get(threadId) !== turnId && this.#active.get(threadId)?.stage !== 'on') this.#active.set(threadId, { stage: 'given', id: turnId });
    this.#look();
  }

  // It was refused, or not answered; if it begins all the same, turn/started will tell.
  notGiven(threadId: string): void {
    if (this.#active.get(threadId)?.stage === 'asked') this.#active.delete(threadId);
    this.#look();
  }

  notice(method: string, params: Json | undefined): void {
    const { threadId, turn } = asObject(params) ?? {};
    const turnId = asString(asObject(turn)?.id);
    if (typeof threadId !== 'string') return;
    if (method === 'turn/started' && turnId !== undefined) this.#active.set(threadId, { stage: 'on', id: turnId });
    else if (method === 'turn/completed' && turnId !== undefined) this.#complete(threadId, turnId);
    else if (method === 'thread/closed') this.#forget(threadId);
    else return;
    this.#look();
  }

  // False when it did not come true in time.
  until(isTrue: () => boolean, ms: number): Promise<boolean> {
    if (isTrue()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const settle = (value: boolean): void => {
        cancel();
        this.#looks.delete(look);
        resolve(value);
      };
      const look = (): void => void (isTrue() && settle(true));
      const cancel = this.#timers.set(ms, () => settle(false));
      this.#looks.add(look);
    });
  }

  // The server is gone, and all turns with it.
  end(): void {
    this.#active.clear();
    this.#look();
  }

  #complete(threadId: string, turnId: string): void {
    this.#completed.set(threadId, turnId);
    const id = this.#active.get(threadId)?.id;
    if (id === turnId || id === null) this.#active.delete(threadId);
  }

  #forget(threadId: string): void {
    this.#opened.delete(threadId);
    this.#active.delete(threadId);
  }

  #look(): void {
    for (const look of this.#looks) look();
  }
}
