// The tokens that hosts share, read every two seconds: one that was added or removed counts on all of them after that time. While they cannot be
// read, those that were read last count, and it is told once.
import { Alarm, type Timers } from '../process/timers.js';
import type { NamedToken, TokenSource } from './tokens.js';

const LOOK_MS = 2000;

export class SharedTokens implements TokenSource {
  readonly #read: () => Promise<readonly NamedToken[]>;
  readonly #onProblem: (error: unknown) => void;
  readonly #alarm: Alarm;
  #tokens: readonly NamedToken[];
  #work: Promise<void> = Promise.resolve();
  #isClosing = false;
  // A database that is away would be told of every two seconds.
  #isTold = false;

  private constructor(read: () => Promise<readonly NamedToken[]>, timers: Timers, onProblem: (error: unknown) => void, tokens: readonly NamedToken[]) {
    this.#read = read;
    this.#onProblem = onProblem;
    this.#tokens = tokens;
    this.#alarm = new Alarm(timers);
    this.#arm();
  }

  static async open(read: () => Promise<readonly NamedToken[]>, timers: Timers, onProblem: (error: unknown) => void): Promise<SharedTokens> {
    return new SharedTokens(read, timers, onProblem, await read());
  }

  #arm(): void {
    if (!this.#isClosing) this.#alarm.set(LOOK_MS, () => void (this.#work = this.#look().finally(() => this.#arm())));
  }

  async #look(): Promise<void> {
    try {
      this.#tokens = await this.#read();
      this.#isTold = false;
    } catch (error) {
      if (!this.#isTold) this.#onProblem(error);
      this.#isTold = true;
    }
  }

  stamp(): string {
    return JSON.stringify(this.#tokens);
  }

  list(): readonly NamedToken[] {
    return this.#tokens;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#alarm.clear();
    await this.#work;
  }
}
