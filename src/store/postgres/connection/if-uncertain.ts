// A change that did not reach the database is tried again for a while; one whose answer was lost is looked for until it
// is known what became of it, or until that takes too long.
import { setTimeout as pause } from 'node:timers/promises';
import { LostConnectionError } from './lost-connection.js';

// A database that is started again, or replaced by its standby, is back within such a time more often than not.
const PAUSES_MS = [0, 50, 100, 200, 400, 800, 1500, 3000, 5000];

// `findOut` does the change again if it was not done; it must be able to tell.
export async function ifUncertain<T>(change: () => Promise<T>, findOut: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (!(error instanceof LostConnectionError)) throw error;
    return untilKnown(error.uncertain ? findOut : change, findOut, error);
  }
}

async function untilKnown<T>(
  first: () => Promise<T>,
  findOut: () => Promise<T>,
  lost: LostConnectionError,
): Promise<T> {
  let attempt = first;
  for (const ms of PAUSES_MS) {
    await pause(ms);
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof LostConnectionError)) throw error;
      if (error.uncertain) attempt = findOut;
    }
  }
  throw lost;
}
