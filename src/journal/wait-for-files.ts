// The files beside a journal are written a moment after what is in them is stored. Whoever compares the two waits for
// that moment, while somebody is there who writes them, and not for ever.
import type { Timers } from '../process/timers.js';

// Says whether to look again.
export type WaitForFiles = () => Promise<boolean>;

const LOOKS = 40;
const LOOK_MS = 50;

// One for each run that is compared.
export function waitForFiles(timers: Timers, hasWriter: () => Promise<boolean>): WaitForFiles {
  let looks = 0;
  let isLast = false;
  return async () => {
    if (isLast || looks === LOOKS) return false;
    looks += 1;
    // Who is gone now may have written them since they were read.
    isLast = !(await hasWriter());
    if (!isLast) await new Promise<void>((resolve) => timers.set(LOOK_MS, resolve));
    return true;
  };
}
