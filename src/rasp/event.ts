// The RASP 1.0 envelope as it is stored and sent.
import { RASP_TYPES, type RaspData } from '../contract/rasp-data.js';
import type { JsonObject } from '../kernel/json.js';

export { RASP_TYPES, type RaspData };
export type RaspType = keyof RaspData;
export type StreamName = 'stdout' | 'stderr';

export const RASP_VERSION = 'rasp/1.0';
export const CATEGORIES = ['lifecycle', 'agent', 'interaction', 'tool', 'artifact', 'diagnostic', 'raw'] as const;

export interface RawRef {
  readonly attempt_number: number;
  readonly stream: StreamName;
  readonly byte_from: number;
  readonly byte_to: number;
  readonly encoding: 'utf-8';
}

export interface RaspEvent {
  readonly protocol_version: typeof RASP_VERSION;
  readonly run_id: string;
  readonly seq: number;
  readonly ts: string;
  readonly attempt_number: number;
  readonly source: { readonly engine: string; readonly parser: string; readonly confidence: number };
  // Open on purpose: a reader meets categories and types of later versions.
  readonly event: { readonly category: string; readonly type: string };
  readonly data: JsonObject;
  readonly correlation: { readonly session_id?: string; readonly item_id?: string; readonly interaction_id?: string };
  readonly raw_ref: RawRef | null;
}
