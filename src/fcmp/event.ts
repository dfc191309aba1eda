// The FCMP 1.0 envelope as it is stored and sent.
import { FCMP_TYPES, type FcmpData } from '../contract/fcmp-data.js';
import type { JsonObject } from '../kernel/json.js';

export { FCMP_TYPES, type FcmpData };
export type FcmpType = keyof FcmpData;

export const FCMP_VERSION = 'fcmp/1.0';
// Incremented when the fold changes, so that the same journal would give a different conversation.
export const FOLD_VERSION = 1;

/** An event of the conversation that a person sees (contract/fcmp.schema.json). */
export interface FcmpEvent {
  /** The version of the protocol. */
  readonly protocol_version: typeof FCMP_VERSION;
  /** The run. */
  readonly run_id: string;
  /** The number of the event within the run, from 1, without gaps. */
  readonly seq: number;
  /** The time of the event (ISO 8601). */
  readonly ts: string;
  /** The turn, from 1. */
  readonly attempt_number: number;
  /** The RASP event from which this event was derived. */
  readonly rasp_seq: number;
  /** The type; `isType` narrows it together with `data`. A string, because later versions add types. */
  readonly type: string;
  /** The content, depending on the type. */
  readonly data: JsonObject;
}
