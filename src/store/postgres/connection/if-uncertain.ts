// Retries a change that did not reach the database for a while. If the result was lost, finds out whether the change
// was stored, until that is known or takes too long.
import { setTimeout as pause } from 'node:timers/promises';
import { LostConnectionError } from './lost-connection.js';

// A database that restarts or fails over to its standby is usually back within this time.
const PAUSES_MS = [0, 50, 100, 200, 400, 800, 1500, 3000, 5000];

// `findOut` repeats the change if it was not stored; it must be able to detect that.
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
