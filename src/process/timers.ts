// Waiting is an argument: whoever sets a deadline is given Timers, so a test moves time by hand.

export interface Timers {
  // Answers how to cancel it.
  set(ms: number, fire: () => void): () => void;
}

// setTimeout takes a longer time for none at all and fires at once.
const LONGEST_MS = 2 ** 31 - 1;

export const systemTimers: Timers = {
  set(ms, fire) {
    const timer = setTimeout(fire, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(timer);
  },
};
