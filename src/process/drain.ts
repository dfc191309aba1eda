// Waits until a child's pipes are read to their end, after all known writers have exited. A writer that could not be
// found must not block us forever, so a pipe that stays open and silent is cut off. A slow handler gets the time it
// needs.
import type { IdleWatch } from './idle-watch.js';
import type { Timers } from './timers.js';

export interface Pipes {
  // Resolves when all pipes were read to their end.
  readonly pumps: Promise<unknown>;
  readonly idle: IdleWatch;
  // The number of bytes read so far.
  bytes(): number;
  cut(): void;
}

// How often an open pipe is checked, and how many bytes may still arrive: more than a pipe can hold.
export const DRAIN_LOOK_MS = 1000;
const MAX_REST_BYTES = 16 * 1024 * 1024;

export async function drain(pipes: Pipes, timers: Timers): Promise<'closed' | 'cut'> {
  const closed = pipes.pumps.then(() => 'closed' as const);
  const before = pipes.bytes();
  while ((await Promise.race([closed, pause(timers, closed)])) === 'open') {
    const quiet = await pipes.idle.isQuiet();
    const state = await Promise.race([closed, Promise.resolve('open' as const)]);
    if (state === 'closed') break;
    if (!quiet && pipes.bytes() - before < MAX_REST_BYTES) continue;
    pipes.cut();
    await pipes.pumps;
    return 'cut';
  }
  return 'closed';
}

function pause(timers: Timers, closed: Promise<unknown>): Promise<'open'> {
  return new Promise((resolve) => {
    const cancel = timers.set(DRAIN_LOOK_MS, () => resolve('open'));
    void closed.then(cancel);
  });
}
