// Classifies output that is not part of the conversation as details: stderr, lines that are not events, warnings,
// errors that the failure of the run repeats, and the agent's done marker. People see one line for all of them. The
// events are unchanged.
import { isObject, parseJson } from '../kernel/json.js';
import type { FcmpData, FcmpEvent } from './event.js';

export interface EngineDetail {
  readonly kind: 'stderr' | 'stdout' | 'warning' | 'done';
  readonly text: string;
}

// Returns null if the event belongs to the conversation.
export function readEngineDetail({ type, data }: Pick<FcmpEvent, 'type' | 'data'>): EngineDetail | null {
  if (type === 'raw.stderr' || type === 'raw.stdout') {
    const { text } = data as unknown as FcmpData['raw.stdout'];
    return { kind: type === 'raw.stderr' ? 'stderr' : 'stdout', text };
  }
  if (type !== 'diagnostic.warning') return null;
  const { code, message } = data as unknown as FcmpData['diagnostic.warning'];
  return { kind: 'warning', text: `${code}: ${message}` };
}

export interface SplitMessage {
  // The agent's message for people.
  readonly text: string;
  // The JSON object that reports to Parley that the work is done, exactly as written; null if there is none.
  readonly marker: string | null;
}

const FENCED = /```(?:json)?\s*(\{[^]*\})\s*```\s*$/;
// Limits for the search: how much of a message's end is searched, and how many lines are tried as the start of the
// marker.
const MAX_MARKER_CHARS = 20_000;
const MAX_TRIES = 20;

// The done marker is at the end of a message, on separate lines, possibly in a fenced block.
export function splitDoneMarker(text: string): SplitMessage {
  const end = text.slice(-MAX_MARKER_CHARS).trimEnd();
  if (!end.endsWith('}') && !end.endsWith('```')) return { text, marker: null };
  const fenced = FENCED.exec(end);
  const body = fenced?.[1] ?? lastObject(end);
  if (body === null || !isDone(body)) return { text, marker: null };
  const whole = fenced?.[0] ?? body;
  const from = text.lastIndexOf(whole.trimEnd());
  return from === -1 ? { text, marker: null } : { text: text.slice(0, from).trimEnd(), marker: body };
}

// Returns the text from the last line that starts with a brace and from which the rest parses as JSON.
function lastObject(text: string): string | null {
  let tries = 0;
  for (let at = text.length; at > 0 && tries < MAX_TRIES;) {
    at = text.lastIndexOf('\n', at - 1);
    const rest = text.slice(at + 1);
    if (/^\s*\{/.test(rest)) {
      if (parseJson(rest) !== undefined) return rest;
      tries += 1;
    }
    if (at <= 0) break;
  }
  return null;
}

function isDone(body: string): boolean {
  const value = parseJson(body);
  return isObject(value) && value['done'] === true;
}

export type DetailCounts = Readonly<Partial<Record<EngineDetail['kind'], number>>>;
