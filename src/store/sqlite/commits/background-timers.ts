// Timers for work that keeps no process alive.
import type { Timers } from '../../../kernel/timers.js';

export const backgroundTimers: Timers = {
  set(ms, fire) {
    const timer = setTimeout(fire, ms);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
