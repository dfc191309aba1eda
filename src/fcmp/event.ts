// The FCMP 1.0 envelope as it is stored and sent.
import { FCMP_TYPES, type FcmpData } from '../contract/fcmp-data.js';
import type { JsonObject } from '../kernel/json.js';

export { FCMP_TYPES, type FcmpData };
export type FcmpType = keyof FcmpData;

export const FCMP_VERSION = 'fcmp/1.0';
// Grows when the same journal would give another conversation.
export const FOLD_VERSION = 1;

export interface FcmpEvent {
  readonly protocol_version: typeof FCMP_VERSION;
  readonly run_id: string;
  readonly seq: number;
  readonly ts: string;
  readonly attempt_number: number;
  readonly rasp_seq: number;
  // Open on purpose: a reader meets types of later versions.
  readonly type: string;
  readonly data: JsonObject;
}
