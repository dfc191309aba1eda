// The clock that hosts share: the clock of the database, read from time to time. Between two readings it advances with
// the monotonic clock, independent of the machine's wall clock. A deviation of at most a second is not corrected.
import type { Clock } from '../../kernel/clock.js';

const TOLERANCE_MS = 1000;

export class SharedClock implements Clock {
  readonly #monotonicMs: () => number;
  // The offset from the monotonic clock.
  #offsetMs: number;

  constructor(local: Clock, monotonicMs: () => number) {
    this.#monotonicMs = monotonicMs;
    this.#offsetMs = local.now() - monotonicMs();
  }

  now(): number {
    return Math.round(this.#monotonicMs() + this.#offsetMs);
  }

  // The database read its clock at some time between the request and the response, so the midpoint is used and half the
  // duration is the uncertainty.
  async learn(readDatabaseClock: () => Promise<number>): Promise<void> {
    const sentAt = this.#monotonicMs();
    const databaseNow = await readDatabaseClock();
    const receivedAt = this.#monotonicMs();
    const offset = databaseNow - (sentAt + receivedAt) / 2;
    const uncertainty = (receivedAt - sentAt) / 2;
    if (Math.abs(offset - this.#offsetMs) > TOLERANCE_MS + uncertainty) this.#offsetMs = offset;
  }
}
