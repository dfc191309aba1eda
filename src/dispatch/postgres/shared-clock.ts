// The time that hosts share: that of the database, as often as it is asked; in between it goes on by itself, whatever
// becomes of the clock of the machine. One that agrees with it within a second when it begins is let be.
import type { Clock } from '../../kernel/clock.js';

const TOLERANCE_MS = 1000;

export class SharedClock implements Clock {
  readonly #monotonicMs: () => number;
  // What is added to the time that only goes on.
  #offsetMs: number;

  constructor(own: Clock, monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#offsetMs = own.now() - monotonicMs();
  }

  now(): number {
    return Math.round(this.#monotonicMs() + this.#offsetMs);
  }

  // What it says was so at some time between the question and its answer.
  async learn(ask: () => Promise<number>): Promise<void> {
    const asked = this.#monotonicMs();
    const theirs = await ask();
    const answered = this.#monotonicMs();
    const offset = theirs - (asked + answered) / 2;
    const doubt = (answered - asked) / 2;
    if (Math.abs(offset - this.#offsetMs) > TOLERANCE_MS + doubt) this.#offsetMs = offset;
  }
}
