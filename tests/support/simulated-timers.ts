// Timers whose time a test moves by hand. `armed` resolves when code has started to wait, so a test never guesses.
import { systemTimers, type Timers } from '../../src/process/timers.js';

interface Pending {
  readonly at: number;
  readonly ms: number;
  readonly fire: () => void;
}

export class SimulatedTimers implements Timers {
  #now = 0;
  readonly #pending = new Set<Pending>();
  #waiting: { readonly ms: number; readonly resolve: () => void }[] = [];

  set(ms: number, fire: () => void): () => void {
    const pending = { at: this.#now + ms, ms, fire };
    this.#pending.add(pending);
    for (const waiting of this.#waiting.filter((waiting) => waiting.ms === ms)) waiting.resolve();
    this.#waiting = this.#waiting.filter((waiting) => waiting.ms !== ms);
    return () => void this.#pending.delete(pending);
  }

  advance(ms: number): void {
    const until = this.#now + ms;
    for (let next = this.#next(until); next; next = this.#next(until)) {
      this.#now = next.at;
      this.#pending.delete(next);
      next.fire();
    }
    this.#now = until;
  }

  // Resolves as soon as a timer of this length is set, at once if one is.
  armed(ms: number): Promise<void> {
    if ([...this.#pending].some((pending) => pending.ms === ms)) return Promise.resolve();
    return new Promise((resolve) => void this.#waiting.push({ ms, resolve }));
  }

  lengths(): number[] {
    return [...this.#pending].map(({ ms }) => ms).toSorted((a, b) => a - b);
  }

  #next(until: number): Pending | undefined {
    return [...this.#pending].filter(({ at }) => at <= until).toSorted((a, b) => a.at - b.at)[0];
  }
}

// Deadlines of turns and people are longer than this and are moved by hand; a flush or a grace period is shorter and
// real.
const LONG_MS = 50_000;

export function onlyLong(simulated: SimulatedTimers): Timers {
  return { set: (ms, fire) => (ms < LONG_MS ? systemTimers : simulated).set(ms, fire) };
}

// A clock and timers that a test moves together. Each reading of the clock takes a millisecond, so no two events have
// the same time.
export class SimulatedTime {
  #now: number;
  #simulated = new SimulatedTimers();
  readonly clock = { now: () => (this.#now += 1) };

  constructor(start = Date.UTC(2026, 0, 1)) {
    this.#now = start;
  }

  get now(): number {
    return this.#now;
  }

  // For a new owner: drops the timers of an earlier one, as when its process has exited.
  createTimers(): Timers {
    const mine = new SimulatedTimers();
    this.#simulated = mine;
    const timers = onlyLong(mine);
    return { set: (ms, fire) => timers.set(ms, () => this.#simulated === mine && fire()) };
  }

  // May also go back; timers ignore that.
  setClock(now: number): void {
    this.#now = now;
  }

  advance(ms: number): void {
    this.#now += ms;
    this.#simulated.advance(ms);
  }

  armed(ms: number): Promise<void> {
    return this.#simulated.armed(ms);
  }
}
