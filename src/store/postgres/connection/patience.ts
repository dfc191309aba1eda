// A short interruption is not an outage: reads are retried for a moment before they are refused.
import { setTimeout as pause } from 'node:timers/promises';
import { LostConnectionError } from './lost-connection.js';

const PAUSES_MS = [50, 100, 200, 400, 800, 1200];

export async function patiently<T>(look: () => Promise<T>): Promise<T> {
  for (const ms of PAUSES_MS) {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof LostConnectionError)) throw error;
    }
    await pause(ms);
  }
  return look();
}
