// Tells when a child has printed nothing for too long. The time in which WE hold back reading (the log or the handler is
// slow) does not count: then it is not the child that is idle.
import { setImmediate } from 'node:timers/promises';
import type { Timers } from './timers.js';

export class IdleWatch {
  readonly #timers: Timers;
  // How many streams are held back now, and how many chunks were ever taken.
  #held = 0;
  #chunks = 0;
  #watched: { readonly ms: number; readonly onIdle: () => void } | null = null;
  #cancel = () => {};

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  start(ms: number, onIdle: () => void): void {
    this.#watched = { ms, onIdle };
    this.#arm();
  }

  stop(): void {
    this.#watched = null;
    this.#cancel();
  }

  // A chunk was read; until it is released its stream is not read.
  hold(): void {
    this.#held += 1;
    this.#chunks += 1;
    this.#cancel();
  }

  release(): void {
    this.#held -= 1;
    if (this.#held === 0) this.#arm();
  }

  // True if nothing is held, and nothing had been waiting to be read: a timer that is late because we were busy fires
  // before the event loop looks at the pipes.
  async isQuiet(): Promise<boolean> {
    const before = this.#chunks;
    // Twice: the first may come before the loop looks again, between two of them lies a whole round.
    await setImmediate();
    await setImmediate();
    return this.#held === 0 && this.#chunks === before;
  }

  #arm(): void {
    this.#cancel();
    const watched = this.#watched;
    if (watched === null) return;
    this.#cancel = this.#timers.set(watched.ms, async () => {
      if ((await this.isQuiet()) && this.#watched === watched) watched.onIdle();
    });
  }
}
