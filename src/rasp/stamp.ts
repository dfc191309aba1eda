// Turns drafts into the text that is stored: gives run, seq and time, and splices the envelope around the data.
// Text is spliced, piece by piece into a sink, because it is hot: an object per event would double the cost.
import { RASP_VERSION } from './event.js';
import type { RaspDraft } from './draft.js';

export interface StampContext {
  readonly runId: string;
  readonly engine: string;
  readonly attempt: number;
}

export interface TextSink {
  // Text of which there are few different ones: encoded once, copied each time.
  constant(text: string): void;
  number(value: number): void;
  ascii(text: string): void;
  text(text: string): void;
}

// Writes one event as a line, LF included.
export type Stamp = (draft: RaspDraft, seq: number, ts: string, sink: TextSink) => void;

export function createStamp(context: StampContext): Stamp {
  const head = `{"protocol_version":"${RASP_VERSION}","run_id":${asciiJson(context.runId)},"seq":`;
  const attempt = `","attempt_number":${context.attempt},"source":{"engine":${asciiJson(context.engine)},"parser":`;
  const rawRef = {
    stdout: `},"raw_ref":{"attempt_number":${context.attempt},"stream":"stdout","byte_from":`,
    stderr: `},"raw_ref":{"attempt_number":${context.attempt},"stream":"stderr","byte_from":`,
  };
  // Few different values occur in a turn, each of them thousands of times.
  const kinds = new Map<string, { parser: string; confidence: number; text: string }[]>();
  let lastTs = '';
  let tsText = '';
  let lastSession: string | null = null;
  let lastItem: string | null = null;
  let sessionText = ',"correlation":{';
  let lastCorrelation = sessionText;

  function kindOf({ type, parser, confidence }: RaspDraft): string {
    let known = kinds.get(type);
    if (!known) kinds.set(type, (known = []));
    for (const entry of known) if (entry.confidence === confidence && entry.parser === parser) return entry.text;
    const category = type.slice(0, type.indexOf('.'));
    const text = `${attempt}${asciiJson(parser)},"confidence":${confidence}},"event":{"category":"${category}","type":"${type}"},"data":`;
    known.push({ parser, confidence, text });
    return text;
  }

  function correlationOf({ sessionId, itemId, interactionId }: RaspDraft): string {
    if (interactionId === null && sessionId === lastSession && itemId === lastItem) return lastCorrelation;
    if (sessionId !== lastSession) {
      lastSession = sessionId;
      sessionText = sessionId === null ? ',"correlation":{' : `,"correlation":{"session_id":${asciiJson(sessionId)}`;
    }
    const item = itemId === null ? '' : `${sessionId === null ? '' : ','}"item_id":${asciiJson(itemId)}`;
    if (interactionId !== null) return `${sessionText}${item}${sessionId === null && itemId === null ? '' : ','}"interaction_id":${asciiJson(interactionId)}`;
    lastItem = itemId;
    lastCorrelation = sessionText + item;
    return lastCorrelation;
  }

  return (draft, seq, ts, sink) => {
    const { range, json } = draft;
    sink.constant(head);
    sink.number(seq);
    if (ts !== lastTs) {
      lastTs = ts;
      tsText = `,"ts":"${ts}`;
    }
    sink.ascii(tsText);
    sink.constant(kindOf(draft));
    if (typeof json === 'string') sink.text(json);
    else {
      sink.constant(json[0]);
      sink.text(json[1]);
      sink.constant(json[2]);
    }
    sink.ascii(correlationOf(draft));
    if (range === null) sink.constant('},"raw_ref":null}\n');
    else {
      sink.constant(rawRef[range.stream]);
      sink.number(range.from);
      sink.constant(',"byte_to":');
      sink.number(range.to);
      sink.constant(',"encoding":"utf-8"}}\n');
    }
  };
}

function asciiJson(text: string): string {
  if (/^[\w.:-]*$/.test(text)) return `"${text}"`;
  return JSON.stringify(text).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
