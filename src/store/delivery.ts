// A notification of a change, from the transaction that stores it until it has arrived or is given up.
import type { JsonObject } from '../kernel/json.js';

// A notification of a change, for one hook.
export interface NewDelivery {
  readonly delivery_id: string;
  readonly hook: string;
  readonly type: string;
  readonly payload: JsonObject;
}

// It stays when its run is deleted, until it has arrived or is given up.
export interface Delivery extends NewDelivery {
  readonly run_id: string;
  // Where the journal ended with the change.
  readonly rasp_seq: number;
  readonly digest: string;
  readonly created_at: number;
  // Those that failed, and when the next one is due.
  readonly tries: number;
  readonly next_at: number;
  // Why the last one failed.
  readonly error: string | null;
}

// One that arrived is forgotten at once, one that was given up after a while or with its run.
export type DeliveryOutcome =
  | { readonly type: 'delivered' }
  | { readonly type: 'retry'; readonly at: number; readonly error: string }
  | { readonly type: 'given_up'; readonly at: number; readonly error: string };

export const GIVEN_UP_KEPT_MS = 30 * 24 * 3600 * 1000;
