// Tracks the threads of one server: their settings and their active turn. A turn is `asked` (turn/start was sent) →
// `given` (it has an id) → `on` (turn/started arrived) → removed (turn/completed arrived). If turn/start gets no
// response, the turn is `unknown` until turn/started arrives. Only a turn that is `on` can be interrupted.
import type { Timers } from '../kernel/timers.js';
import { asObject, asString, type Json } from '../kernel/json.js';
import { AppServerError } from './app-server-error.js';
import type { ThreadSettings } from './thread-settings.js';

interface ActiveTurn {
  readonly stage: 'asked' | 'unknown' | 'given' | 'on';
  readonly id: string | null;
}

export class ThreadBook {
  readonly #timers: Timers;
  readonly #opened = new Map<string, ThreadSettings>();
  readonly #active = new Map<string, ActiveTurn>();
  // Threads whose history is being changed.
  readonly #held = new Set<string>();
  // Threads that Codex does not store.
  readonly #ephemeral = new Set<string>();
  // The last completed turn of each thread: the response to turn/start may arrive after the end of the turn.
  readonly #completed = new Map<string, string>();
  readonly #looks = new Set<() => void>();

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  open(threadId: string, settings: ThreadSettings): void {
    this.#opened.set(threadId, settings);
  }

  noteEphemeral(threadId: string): void {
    this.#ephemeral.add(threadId);
  }

  isEphemeral(threadId: string): boolean {
    return this.#ephemeral.has(threadId);
  }

  settingsOf(threadId: string): ThreadSettings | undefined {
    return this.#opened.get(threadId);
  }

  turnOf(threadId: string): ActiveTurn | undefined {
    return this.#active.get(threadId);
  }

  // On a thread with an active turn, turn/start would steer that turn instead of starting one.
  ask(threadId: string): void {
    this.#refuseIfActive(threadId);
    this.#active.set(threadId, { stage: 'asked', id: null });
  }

  // Runs `work` while no turn can start and no other caller holds the thread.
  async hold<T>(threadId: string, work: () => Promise<T>): Promise<T> {
    this.#refuseIfActive(threadId);
    this.#held.add(threadId);
    try {
      return await work();
    } finally {
      this.#held.delete(threadId);
    }
  }

  #refuseIfActive(threadId: string): void {
    if (this.#held.has(threadId))
      throw new AppServerError('turn_active', `the thread ${threadId} is being rolled back`);
    const turn = this.#active.get(threadId);
    if (turn?.stage === 'unknown')
      throw new AppServerError('turn_active', `the thread ${threadId} may have a turn: turn/start was not answered`);
    if (turn)
      throw new AppServerError(
        'turn_active',
        `the thread ${threadId} has an active turn${turn.id === null ? '' : ` (${turn.id})`}`,
      );
  }

  markAccepted(threadId: string, turnId: string): void {
    if (this.#completed.get(threadId) !== turnId && this.#active.get(threadId)?.stage !== 'on')
      this.#active.set(threadId, { stage: 'given', id: turnId });
    this.#look();
  }

  refused(threadId: string): void {
    if (this.#active.get(threadId)?.stage === 'asked') this.#active.delete(threadId);
    this.#look();
  }

  // The turn may still start; turn/started shows it.
  unanswered(threadId: string): void {
    if (this.#active.get(threadId)?.stage === 'asked') this.#active.set(threadId, { stage: 'unknown', id: null });
    this.#look();
  }

  // Records the end of a turn that another source than turn/completed reported.
  ended(threadId: string, turnId: string): void {
    this.#complete(threadId, turnId);
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

  // Resolves to false if the condition is not met in time.
  until(isTrue: () => boolean, ms: number): Promise<boolean> {
    if (isTrue()) return Promise.resolve(true);
    return new Promise((resolve) => {
      const finish = (value: boolean): void => {
        cancel();
        this.#looks.delete(look);
        resolve(value);
      };
      const look = (): void => void (isTrue() && finish(true));
      const cancel = this.#timers.set(ms, () => finish(false));
      this.#looks.add(look);
    });
  }

  // The server has exited, and with it all turns.
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
