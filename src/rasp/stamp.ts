// Turns drafts into the text that is stored: gives run, seq and time, and splices the envelope around the data.
// Text is spliced because it is hot: building an object and serialising it takes half as long again.
import { RASP_VERSION } from './event.js';
import type { RaspDraft } from './draft.js';

export interface StampContext {
  readonly runId: string;
  readonly engine: string;
  readonly attempt: number;
}

export type Stamp = (draft: RaspDraft, seq: number, ts: string) => string;

export function createStamp(context: StampContext): Stamp {
  const head = `{"protocol_version":"${RASP_VERSION}","run_id":${JSON.stringify(context.runId)},"seq":`;
  const attempt = `","attempt_number":${context.attempt},"source":{"engine":${JSON.stringify(context.engine)},"parser":`;
  const rawRef = {
    stdout: `,"raw_ref":{"attempt_number":${context.attempt},"stream":"stdout","byte_from":`,
    stderr: `,"raw_ref":{"attempt_number":${context.attempt},"stream":"stderr","byte_from":`,
  };
  // Few different values occur in a turn, each of them thousands of times.
  const kinds = new Map<string, { parser: string; confidence: number; text: string }[]>();
  const sessions = new Map<string | null, string>();

  function describeKind({ type, parser, confidence }: RaspDraft): string {
    let known = kinds.get(type);
    if (!known) kinds.set(type, (known = []));
    for (const entry of known) if (entry.confidence === confidence && entry.parser === parser) return entry.text;
    const category = type.slice(0, type.indexOf('.'));
    const text = `${attempt}${JSON.stringify(parser)},"confidence":${confidence}},"event":{"category":"${category}","type":"${type}"},"data":`;
    known.push({ parser, confidence, text });
    return text;
  }

  return (draft, seq, ts) => {
    const kind = describeKind(draft);
    let correlation = sessions.get(draft.sessionId);
    if (correlation === undefined) {
      correlation = draft.sessionId === null ? ',"correlation":{' : `,"correlation":{"session_id":${JSON.stringify(draft.sessionId)}`;
      sessions.set(draft.sessionId, correlation);
    }
    if (draft.itemId !== null) correlation += `${draft.sessionId === null ? '' : ','}"item_id":${JSON.stringify(draft.itemId)}`;
    if (draft.interactionId !== null) correlation += `${draft.sessionId === null && draft.itemId === null ? '' : ','}"interaction_id":${JSON.stringify(draft.interactionId)}`;
    const { range } = draft;
    const tail = range === null ? '},"raw_ref":null}' : `}${rawRef[range.stream]}${range.from},"byte_to":${range.to},"encoding":"utf-8"}}`;
    return `${head}${seq},"ts":"${ts}${kind}${draft.json}${correlation}${tail}`;
  };
}
