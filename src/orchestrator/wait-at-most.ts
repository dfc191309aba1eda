// Waits for work, but no longer than a given time.
import type { Timers } from '../process/timers.js';

export function waitAtMost(timers: Timers, ms: number, work: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.set(ms, resolve);
    void work.then(cancel).then(resolve);
  });
}
