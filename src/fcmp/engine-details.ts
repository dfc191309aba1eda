// What an engine prints beside the conversation (stderr, lines that are no events, warnings, errors that the failure of
// the run repeats) and the agent's done marker: read as details, so that people see one line for them. The events
// themselves are unchanged.
import { isObject, parseJson } from '../kernel/json.js';
import type { FcmpData, FcmpEvent } from './event.js';

export interface EngineDetail {
  readonly kind: 'stderr' | 'stdout' | 'warning' | 'done';
  readonly text: string;
}

// Null: the event belongs to the conversation.
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
  // What the agent said to people.
  readonly text: string;
  // The JSON object that tells Parley that the work is done, as it was written; null if there is none.
  readonly marker: string | null;
}

const FENCED = /```(?:json)?\s*(\{[^]*\})\s*```\s*$/;
// Longer ends of messages are not searched, and no more lines are tried as its beginning.
const MAX_MARKER_CHARS = 20_000;
const MAX_TRIES = 20;

// The done marker stands at the end of a message, on lines of its own, perhaps in a fence.
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

// The text from the last line on that begins with a brace and makes the rest JSON.
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

function count(number: number, one: string, many: string): string[] {
  return number === 0 ? [] : [`${number} ${number === 1 ? one : many}`];
}

export type DetailCounts = Readonly<Partial<Record<EngineDetail['kind'], number>>>;

// "3 lines of stderr, 2 warnings, the done marker".
export function summarizeDetails({ stderr = 0, stdout = 0, warning = 0, done = 0 }: DetailCounts): string {
  return [
    ...count(stderr, 'line of stderr', 'lines of stderr'),
    ...count(stdout, 'line of stdout', 'lines of stdout'),
    ...count(warning, 'warning', 'warnings'),
    ...(done > 0 ? ['the done marker'] : []),
  ].join(', ');
}
