// The timers of the system, and two things that are often done with timers.
import type { Clock } from '../kernel/clock.js';
import type { Timers } from '../kernel/timers.js';

export type { Timers } from '../kernel/timers.js';

// setTimeout takes a longer time for none at all and fires at once: such a time is waited for in pieces.
export const LONGEST_MS = 2 ** 31 - 1;

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

// One time to be woken at: a new one replaces the old.
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

// A time of the clock to be woken at. Timers do not notice when somebody sets the clock, so the clock is read again now
// and then.
export class ClockAlarm {
  readonly #clock: Clock;
  readonly #timer: Alarm;
  readonly #look: Alarm;

  constructor(clock: Clock, timers: Timers) {
    this.#clock = clock;
    this.#timer = new Alarm(timers);
    this.#look = new Alarm(timers);
  }

  // A time that has passed fires after a moment.
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

// A while, or until the signal.
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
