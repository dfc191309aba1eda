// Journal files are written shortly after their events are stored. A check that compares the two waits for that, as
// long as a writer is running, and only for a limited time.
import type { Timers } from '../process/timers.js';

// Resolves to whether to check again.
export type WaitForFiles = () => Promise<boolean>;

const LOOKS = 40;
const LOOK_MS = 50;

// Create one for each run that is compared.
export function waitForFiles(timers: Timers, hasWriter: () => Promise<boolean>): WaitForFiles {
  let looks = 0;
  let isLast = false;
  return async () => {
    if (isLast || looks === LOOKS) return false;
    looks += 1;
    // A writer that has just exited may have written the files since they were read.
    isLast = !(await hasWriter());
    if (!isLast) await new Promise<void>((resolve) => timers.set(LOOK_MS, resolve));
    return true;
  };
}
