// Waits until a child's pipes are read to their end, after all writers that we know of are gone. A writer that could
// not be found must not hold us for ever: a pipe that stays open and silent is cut off. A slow handler has the time it
// needs.
import type { IdleWatch } from './idle-watch.js';
import type { Timers } from './timers.js';

export interface Pipes {
  // Settles when all of them were read to the end.
  readonly pumps: Promise<unknown>;
  readonly idle: IdleWatch;
  // What was read so far.
  bytes(): number;
  cut(): void;
}

// How often an open pipe is looked at, and what may still come out of it: more than a pipe can hold.
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
