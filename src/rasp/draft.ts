// An event before it is stored: everything but the run, the seq and the time.
// The data is turned into text here, once: what is stored, sent and hashed is this text.
import type { RaspData, RaspType, StreamName } from './event.js';
import { checkRaspData } from './validate.js';

export interface ByteRange {
  readonly stream: StreamName;
  readonly from: number;
  readonly to: number;
}

// JSON as text; or, where a member is long, that member between what stands before it and after it; the end is ASCII.
export type JsonText = string | readonly [before: string, long: string, after: string];

// What stands before the text of a message, which is what most events are.
export const TEXT_MEMBER = '{"text":';

export interface RaspDraft<T extends RaspType = RaspType> {
  readonly type: T;
  readonly data: RaspData[T];
  readonly json: JsonText;
  readonly parser: string;
  readonly confidence: number;
  readonly sessionId: string | null;
  readonly itemId: string | null;
  readonly interactionId: string | null;
  readonly range: ByteRange | null;
}

export const ORCHESTRATOR = 'orchestrator';

// An event of our own making.
export function draft<T extends RaspType>(
  type: T,
  data: RaspData[T],
  correlation: { sessionId?: string | null; interactionId?: string } = {},
): RaspDraft<T> {
  checkRaspData(type, data);
  return {
    type,
    data,
    json: JSON.stringify(data),
    parser: ORCHESTRATOR,
    confidence: 1,
    sessionId: correlation.sessionId ?? null,
    itemId: null,
    interactionId: correlation.interactionId ?? null,
    range: null,
  };
}
