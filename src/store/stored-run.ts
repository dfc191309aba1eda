// A run with its rows, for a copy from one store into another; JSON columns are copied character by character.
import type { Delivery } from './store.js';
import type { InteractionRow, RunRow } from './rows.js';

export interface StoredRun {
  readonly run: RunRow & { readonly engine: string; readonly queued_at: number | null };
  readonly runtime: RuntimeRow | null;
  readonly interactions: readonly InteractionRow[];
  readonly turns: readonly TurnRow[];
  readonly deliveries: readonly DeliveryRow[];
}

// The digest of the run's request.
export interface RuntimeRow {
  readonly effective_session_timeout_sec: number;
  readonly session_handle_json: string | null;
  readonly updated_at: string;
}

export interface TurnRow {
  readonly run_id: string;
  readonly attempt_number: number;
  readonly engine: string;
  readonly profile: string;
  readonly units: number;
  readonly parsed: number;
  readonly fallbacks: number;
  readonly warnings_json: string;
  readonly completion: string;
  readonly reason_code: string;
}

export interface DeliveryRow extends Omit<Delivery, 'payload'> {
  readonly payload_json: string;
  readonly state: string;
}

export interface SegmentRow {
  readonly run_id: string;
  readonly protocol: string;
  readonly seq_from: number;
  readonly seq_to: number;
  readonly ts_from: number;
  readonly ts_to: number;
  readonly body: Uint8Array;
}
