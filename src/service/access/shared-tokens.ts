// The tokens that hosts share: named ones, those of operators and those of live hosts. They are read every two seconds,
// and immediately when another host or a command reports a change. A request that arrives after such a notification
// waits for the read. If they cannot be read, the last known tokens apply, and the failure is reported once.
import { Alarm, pause, type Timers } from '../../process/timers.js';
import type { OperatorSource, OperatorToken } from './operator-token.js';
import type { NamedToken, TokenSource } from './tokens.js';

const LOOK_MS = 2000;
// Requests with unknown tokens share one read per this time, so that guessing causes few of them.
const RELOAD_MS = 50;

export interface SharedState {
  readonly tokens: readonly NamedToken[];
  readonly operators: readonly OperatorToken[];
  // The SHA-256 of the tokens of live hosts.
  readonly hosts: readonly string[];
}

interface Opened {
  readonly load: () => Promise<SharedState>;
  readonly timers: Timers;
  readonly onProblem: (error: unknown) => void;
  // The result of the first read.
  readonly state: SharedState;
}

export class SharedTokens implements TokenSource {
  readonly #load: () => Promise<SharedState>;
  readonly #onProblem: (error: unknown) => void;
  readonly #timers: Timers;
  readonly #alarm: Alarm;
  readonly #closing = new AbortController();
  #state: SharedState;
  #stamp = 0;
  #reading: Promise<void> = Promise.resolve();
  #polling: Promise<void> = Promise.resolve();
  // The current read for unknown tokens, and the next one if it has not started.
  #reloading: Promise<void> = Promise.resolve();
  #nextReload: Promise<void> | null = null;
  // Reads are numbered: one that started earlier never replaces the result of a later one.
  #begun = 0;
  #applied = 0;
  // Reported once: an unreachable database would otherwise be reported every two seconds.
  #isReported = false;

  private constructor({ load, timers, onProblem, state }: Opened) {
    this.#load = load;
    this.#onProblem = onProblem;
    this.#state = state;
    this.#timers = timers;
    this.#alarm = new Alarm(timers);
    this.#arm();
  }

  static async open(
    load: () => Promise<SharedState>,
    timers: Timers,
    onProblem: (error: unknown) => void,
  ): Promise<SharedTokens> {
    return new SharedTokens({ load, timers, onProblem, state: await load() });
  }

  // A change was reported: a read in progress may be older, so another one follows.
  changed(): void {
    this.#reading = this.#reading.then(() => this.#read());
  }

  refresh(): Promise<void> {
    return this.#reading;
  }

  reload(): Promise<void> {
    this.#nextReload ??= this.#reloadSoon();
    return this.#nextReload;
  }

  async #reloadSoon(): Promise<void> {
    await Promise.all([pause(this.#timers, RELOAD_MS, this.#closing.signal), this.#reloading]);
    this.#nextReload = null;
    this.#reloading = this.#read();
    await this.#reloading;
  }

  #arm(): void {
    if (this.#closing.signal.aborted) return;
    this.#alarm.set(LOOK_MS, () => void (this.#polling = this.#read().finally(() => this.#arm())));
  }

  async #read(): Promise<void> {
    const number = (this.#begun += 1);
    try {
      const state = await this.#load();
      this.#isReported = false;
      if (number < this.#applied) return;
      this.#applied = number;
      if (JSON.stringify(state) !== JSON.stringify(this.#state)) this.#stamp += 1;
      this.#state = state;
    } catch (error) {
      if (!this.#isReported) this.#onProblem(error);
      this.#isReported = true;
    }
  }

  stamp(): string {
    return String(this.#stamp);
  }

  list(): readonly NamedToken[] {
    return this.#state.tokens;
  }

  get operator(): OperatorSource {
    return { stamp: () => this.stamp(), list: () => this.#state.operators };
  }

  hosts(): readonly string[] {
    return this.#state.hosts;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#alarm.clear();
    await this.#nextReload;
    await Promise.all([this.#reading, this.#polling, this.#reloading]);
  }
}
