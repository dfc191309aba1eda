// When a failed delivery is retried, and when Parley gives it up. Pure.
import type { DeliveryOutcome } from '../store/store.js';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const PAUSES = [5 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, HOUR, 6 * HOUR];
const LAST_PAUSE = 12 * HOUR;
// A weekend and one more day: enough to notice and repair a receiver.
export const TRIED_FOR_MS = 72 * HOUR;

// `tries` counts the failed attempts before this one.
export function afterFailure(
  { tries, created_at: created }: { readonly tries: number; readonly created_at: number },
  now: number,
  error: string,
): DeliveryOutcome {
  const at = now + (PAUSES[tries] ?? LAST_PAUSE);
  return at > created + TRIED_FOR_MS ? { type: 'given_up', at: now, error } : { type: 'retry', at, error };
}
