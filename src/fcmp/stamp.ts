// Serializes an FCMP event as text, or as bytes into a sink, piece by piece because this is the hot path. Both give the
// same line.
import type { JsonText } from '../rasp/draft.js';
import { asciiBytes, asciiJson, type TextSink } from '../rasp/stamp.js';
import { FCMP_VERSION, type FcmpType } from './event.js';

export interface FcmpDraft {
  readonly seq: number;
  readonly ts: string;
  readonly attempt: number;
  readonly raspSeq: number;
  readonly type: FcmpType;
  readonly json: JsonText;
}

const END = asciiBytes('}\n');

function headOf(runId: string): string {
  return `{"protocol_version":"${FCMP_VERSION}","run_id":${asciiJson(runId)},"seq":`;
}

function timeOf(ts: string, attempt: number): string {
  return `,"ts":"${ts}","attempt_number":${attempt},"rasp_seq":`;
}

function typeOf(type: FcmpType): string {
  return `,"type":"${type}","data":`;
}

// Returns the line without LF.
export function lineOf(runId: string, { seq, ts, attempt, raspSeq, type, json }: FcmpDraft): string {
  const data = typeof json === 'string' ? json : json.join('');
  return `${headOf(runId)}${seq}${timeOf(ts, attempt)}${raspSeq}${typeOf(type)}${data}}`;
}

// Writes one event as a line, including LF.
export type FcmpStamp = (draft: FcmpDraft, sink: TextSink) => void;

export function createFcmpStamp(runId: string): FcmpStamp {
  const head = asciiBytes(headOf(runId));
  const types = new Map<FcmpType, Uint8Array>();
  // Cached, because events that are stored together have one time and mostly one attempt.
  let time = { ts: '', attempt: 0, text: '' };
  return ({ seq, ts, attempt, raspSeq, type, json }, sink) => {
    if (ts !== time.ts || attempt !== time.attempt) time = { ts, attempt, text: timeOf(ts, attempt) };
    let middle = types.get(type);
    if (!middle) types.set(type, (middle = asciiBytes(typeOf(type))));
    sink.bytes(head);
    sink.number(seq);
    sink.ascii(time.text);
    sink.number(raspSeq);
    sink.bytes(middle);
    if (typeof json === 'string') sink.text(json);
    else {
      sink.text(json[0]);
      sink.text(json[1]);
      sink.ascii(json[2]);
    }
    sink.bytes(END);
  };
}
