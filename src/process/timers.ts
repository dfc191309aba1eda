// The timers of the system, for whoever is given Timers.
import type { Timers } from '../kernel/timers.js';

export type { Timers } from '../kernel/timers.js';

// setTimeout takes a longer time for none at all and fires at once: such a time is waited for in pieces.
export const LONGEST_MS = 2 ** 31 - 1;

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
