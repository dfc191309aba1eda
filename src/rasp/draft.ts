// An event before it is stored: without run, seq and time. The data is serialized here, once: this text is stored, sent
// and hashed.
import type { RaspData, RaspType, StreamName } from './event.js';
import { checkRaspData } from './validate.js';

export interface ByteRange {
  readonly stream: StreamName;
  readonly from: number;
  readonly to: number;
}

// JSON text. If one member is long, the text is split into the part before it, the member, and the part after it, which
// is ASCII.
export type JsonText = string | readonly [before: string, long: string, after: string];

// The text before a message's text; most events are messages.
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

// Creates an event that Parley itself reports.
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
