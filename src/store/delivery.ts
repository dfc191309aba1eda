// A webhook delivery, from the transaction that stores it until it has arrived or is given up.
import type { JsonObject } from '../kernel/json.js';

// A new delivery of a change to one hook.
export interface NewDelivery {
  readonly delivery_id: string;
  readonly hook: string;
  readonly type: string;
  readonly payload: JsonObject;
}

// A delivery remains when its run is deleted, until it has arrived or is given up.
export interface Delivery extends NewDelivery {
  readonly run_id: string;
  // The end of the journal after the change.
  readonly rasp_seq: number;
  readonly digest: string;
  readonly created_at: number;
  // The number of failed attempts, and when the next one is due.
  readonly tries: number;
  readonly next_at: number;
  // Why the last attempt failed.
  readonly error: string | null;
}

// A successful delivery is deleted at once; one that was given up is kept for a while, or until its run is deleted.
export type DeliveryOutcome =
  | { readonly type: 'delivered' }
  | { readonly type: 'retry'; readonly at: number; readonly error: string }
  | { readonly type: 'given_up'; readonly at: number; readonly error: string };

export const GIVEN_UP_KEPT_MS = 30 * 24 * 3600 * 1000;
