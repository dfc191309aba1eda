// The time that hosts share: that of the database, as often as it is asked. A clock of a host that agrees with it within a second is let be.
import type { Clock } from '../../kernel/clock.js';

const TOLERANCE_MS = 1000;

export class SharedClock implements Clock {
  readonly #own: Clock;
  #offsetMs = 0;

  constructor(own: Clock) {
    this.#own = own;
  }

  now(): number {
    return this.#own.now() + this.#offsetMs;
  }

  // What it says was so at some time between the question and its answer.
  async learn(ask: () => Promise<number>): Promise<void> {
    const asked = this.#own.now();
    const theirs = await ask();
    const answered = this.#own.now();
    const offset = theirs - (asked + answered) / 2;
    const doubt = Math.abs(answered - asked) / 2;
    if (Math.abs(offset - this.#offsetMs) > TOLERANCE_MS + doubt) this.#offsetMs = Math.round(offset);
  }
}
