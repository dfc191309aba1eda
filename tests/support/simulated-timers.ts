// Timers whose time a test moves by hand. `armed` tells when somebody has begun to wait, so a test never guesses.
import type { Timers } from '../../src/process/timers.js';

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
