// The system's timers, and two helpers built on timers.
import type { Clock } from '../kernel/clock.js';
import type { Timers } from '../kernel/timers.js';

export type { Timers } from '../kernel/timers.js';

// setTimeout treats a longer time as zero and fires at once, so such a time is split.
const LONGEST_MS = 2 ** 31 - 1;

const CLOCK_LOOK_MS = 5000;

export const systemTimers: Timers = {
  set(ms, fire) {
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      timer = setTimeout(() => (left > LONGEST_MS ? wait(left - LONGEST_MS) : fire()), Math.min(left, LONGEST_MS));
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

// A single alarm: setting a new time replaces the old one.
export class Alarm {
  readonly #timers: Timers;
  #cancel: (() => void) | null = null;

  constructor(timers: Timers) {
    this.#timers = timers;
  }

  get isSet(): boolean {
    return this.#cancel !== null;
  }

  set(ms: number, fire: () => void): void {
    this.clear();
    this.#cancel = this.#timers.set(ms, () => {
      this.#cancel = null;
      fire();
    });
  }

  clear(): void {
    this.#cancel?.();
    this.#cancel = null;
  }
}

// An alarm for a time of the clock. Timers do not notice when the clock is set, so the clock is read again regularly.
export class ClockAlarm {
  readonly #clock: Clock;
  readonly #timer: Alarm;
  readonly #look: Alarm;

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock;
    this.#timer = new Alarm(timers);
    this.#look = new Alarm(timers);
  }

  // A time in the past fires in a later event-loop tick.
  set(at: number, fire: () => void): void {
    const ring = (): void => {
      this.clear();
      fire();
    };
    const look = (): void => (this.#clock.now() >= at ? ring() : this.#look.set(CLOCK_LOOK_MS, look));
    this.clear();
    const wait = Math.max(1, at - this.#clock.now());
    this.#timer.set(wait, ring);
    if (wait > CLOCK_LOOK_MS) this.#look.set(CLOCK_LOOK_MS, look);
  }

  clear(): void {
    this.#timer.clear();
    this.#look.clear();
  }
}

// Waits for this time, or until the signal aborts.
export function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      cancel();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const cancel = timers.set(ms, end);
    signal.addEventListener('abort', end);
  });
}
