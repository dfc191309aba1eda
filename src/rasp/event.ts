// The RASP 1.0 envelope as it is stored and sent.
import { RASP_TYPES, type RaspData } from '../contract/rasp-data.js';
import type { JsonObject } from '../kernel/json.js';

export { RASP_TYPES, type RaspData };
export type RaspType = keyof RaspData;
export type StreamName = 'stdout' | 'stderr';

export const RASP_VERSION = 'rasp/1.0';
export const CATEGORIES = ['lifecycle', 'agent', 'interaction', 'tool', 'artifact', 'diagnostic', 'raw'] as const;

interface RawRef {
  readonly attempt_number: number;
  readonly stream: StreamName;
  readonly byte_from: number;
  readonly byte_to: number;
  readonly encoding: 'utf-8';
}

/** An event that Parley observed (contract/rasp.schema.json). */
export interface RaspEvent {
  /** The version of the protocol. */
  readonly protocol_version: typeof RASP_VERSION;
  /** The run. */
  readonly run_id: string;
  /** The number of the event within the run, from 1, without gaps. */
  readonly seq: number;
  /** The time of the event (ISO 8601). */
  readonly ts: string;
  /** The turn, from 1. */
  readonly attempt_number: number;
  /** The engine, the parser that read its output, and how certain the parser is, from 0 to 1. */
  readonly source: { readonly engine: string; readonly parser: string; readonly confidence: number };
  /** The category and the type. Strings, because later versions add values. */
  readonly event: { readonly category: string; readonly type: string };
  /** The content, depending on the type. */
  readonly data: JsonObject;
  /** The session, the engine's item and the question to which the event belongs. */
  readonly correlation: { readonly session_id?: string; readonly item_id?: string; readonly interaction_id?: string };
  /** The bytes of the engine's output from which the event was made; null: Parley wrote the event itself. */
  readonly raw_ref: RawRef | null;
}
