// Turns drafts into the stored text: adds run, seq and time, and splices the envelope around the data. This is the hot
// path, so text is spliced into a sink piece by piece: one object per event would double the cost.
import { RASP_VERSION } from './event.js';
import { TEXT_MEMBER, type RaspDraft } from './draft.js';

export interface StampContext {
  readonly runId: string;
  readonly engine: string;
  readonly attempt: number;
}

export interface TextSink {
  bytes(constant: Uint8Array): void;
  number(value: number): void;
  ascii(text: string): void;
  text(text: string): void;
}

// Writes one event as a line, including LF.
export type Stamp = (draft: RaspDraft, seq: number, ts: string, sink: TextSink) => void;

const TIME_MEMBER = ',"ts":"';
const TEXT_MEMBER_BYTES = asciiBytes(TEXT_MEMBER);
const BYTE_TO = asciiBytes(',"byte_to":');
const END = asciiBytes(',"encoding":"utf-8"}}\n');
const END_WITHOUT_REF = asciiBytes('},"raw_ref":null}\n');

// The text between seq and data, for one kind of event and one time.
interface Middle {
  readonly parser: string;
  readonly confidence: number;
  // The text after the time.
  readonly text: string;
  ts: string;
  bytes: Uint8Array;
}

export function createStamp(context: StampContext): Stamp {
  const head = asciiBytes(`{"protocol_version":"${RASP_VERSION}","run_id":${asciiJson(context.runId)},"seq":`);
  const source = `","attempt_number":${context.attempt},"source":{"engine":${asciiJson(context.engine)},"parser":`;
  const rawRef = {
    stdout: asciiBytes(`},"raw_ref":{"attempt_number":${context.attempt},"stream":"stdout","byte_from":`),
    stderr: asciiBytes(`},"raw_ref":{"attempt_number":${context.attempt},"stream":"stderr","byte_from":`),
  };
  const middles = new Map<string, Middle[]>();
  // Cached, because a turn has one session, and events of one item mostly follow each other.
  let session: { id: string | null; bytes: Uint8Array } = { id: null, bytes: asciiBytes(',"correlation":{') };

  let item: { id: string | null; member: string } = { id: null, member: '' };

  // Cached, because many events have the same time.
  function middleOf(draft: RaspDraft, ts: string): Uint8Array {
    const middle = kindOf(draft);
    if (middle.ts === ts) return middle.bytes;
    if (middle.ts.length === ts.length)
      for (let at = 0; at < ts.length; at += 1) middle.bytes[TIME_MEMBER.length + at] = ts.charCodeAt(at);
    else middle.bytes = asciiBytes(`${TIME_MEMBER}${ts}${middle.text}`);
    middle.ts = ts;
    return middle.bytes;
  }

  function kindOf({ type, parser, confidence }: RaspDraft): Middle {
    let known = middles.get(type);
    if (!known) middles.set(type, (known = []));
    for (const middle of known) if (middle.confidence === confidence && middle.parser === parser) return middle;
    const category = type.slice(0, type.indexOf('.'));
    const text =
      `${source}${asciiJson(parser)},"confidence":${confidence}},` +
      `"event":{"category":"${category}","type":"${type}"},"data":`;
    const middle = { parser, confidence, text, ts: '', bytes: new Uint8Array(0) };
    known.push(middle);
    return middle;
  }

  function writeCorrelation({ sessionId, itemId, interactionId }: RaspDraft, sink: TextSink): void {
    if (sessionId !== session.id) {
      const member = sessionId === null ? '' : `"session_id":${asciiJson(sessionId)}`;
      session = { id: sessionId, bytes: asciiBytes(`,"correlation":{${member}`) };
    }
    sink.bytes(session.bytes);
    if (itemId !== null) {
      if (itemId !== item.id) item = { id: itemId, member: `"item_id":${asciiJson(itemId)}` };
      if (sessionId !== null) sink.ascii(',');
      sink.ascii(item.member);
    }
    if (interactionId !== null)
      sink.ascii(`${sessionId === null && itemId === null ? '' : ','}"interaction_id":${asciiJson(interactionId)}`);
  }

  return (draft, seq, ts, sink) => {
    const { range, json } = draft;
    sink.bytes(head);
    sink.number(seq);
    sink.bytes(middleOf(draft, ts));
    if (typeof json === 'string') sink.text(json);
    else {
      if (json[0] === TEXT_MEMBER) sink.bytes(TEXT_MEMBER_BYTES);
      else sink.text(json[0]);
      sink.text(json[1]);
      sink.ascii(json[2]);
    }
    writeCorrelation(draft, sink);
    if (range === null) sink.bytes(END_WITHOUT_REF);
    else {
      sink.bytes(rawRef[range.stream]);
      sink.number(range.from);
      sink.bytes(BYTE_TO);
      sink.number(range.to);
      sink.bytes(END);
    }
  };
}

export function asciiBytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at += 1) bytes[at] = text.charCodeAt(at);
  return bytes;
}

// Ids are nearly always short and plain; checking the characters is cheaper than JSON.stringify.
export function asciiJson(text: string): string {
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charCodeAt(at);
    if (char < 0x20 || char > 0x7e || char === 0x22 || char === 0x5c) return escaped(text);
  }
  return `"${text}"`;
}

function escaped(text: string): string {
  return JSON.stringify(text).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
