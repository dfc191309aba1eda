// Waiting is an argument: whoever sets a deadline is given Timers, so a test moves time by hand.

export interface Timers {
  // Answers how to cancel it.
  set(ms: number, fire: () => void): () => void;
}

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
