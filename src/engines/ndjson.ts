// The common part of the profiles that print one JSON object per line: decodes a line, finds its rule, and falls back.
import { stripVTControlCharacters } from 'node:util';
import type { DiagnosticCode } from '../contract/error-codes.js';
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';
import type { Emitter } from './emitter.js';

// Why a rule could not use an event.
export interface Drift {
  readonly code: Extract<DiagnosticCode, 'FIELD_DRIFT' | 'UNKNOWN_EVENT_TYPE'>;
  readonly name: string;
}

export type Rule = (event: JsonObject) => Drift | undefined;

// Handles events in addition to their rules.
export interface LineHooks {
  // Receives every decoded event, including one that drifts.
  readonly before?: (event: JsonObject) => void;
  // The name of the event's rule, if that is not its `type`.
  readonly nameOf?: (event: JsonObject) => Json | undefined;
}

export const drifted = (path: string): Drift => ({ code: 'FIELD_DRIFT', name: path });
export const unknownType = (type: string): Drift => ({ code: 'UNKNOWN_EVENT_TYPE', name: type.slice(0, 200) });

export function isBlank(text: string): boolean {
  return text.trim() === '';
}

const NO_HOOKS: LineHooks = {};

// Reads one line of stdout by the rules of a profile.
export function readNdjsonLine(
  out: Emitter,
  rules: ReadonlyMap<string, Rule>,
  text: string,
  terminated: boolean,
  hooks: LineHooks = NO_HOOKS,
): void {
  readDecodedLine(out, rules, decodeLine(out, text), text, terminated, hooks);
}

// Reads a line that was already decoded (or could not be).
export function readDecodedLine(
  out: Emitter,
  rules: ReadonlyMap<string, Rule>,
  event: JsonObject | undefined,
  text: string,
  terminated: boolean,
  { before, nameOf }: LineHooks = NO_HOOKS,
): void {
  if (!event) {
    // An empty line is not output: covered, but neither a hit nor a fallback.
    if (isBlank(text)) out.raw('stdout', text);
    else undecodable(out, text, terminated);
    return;
  }
  before?.(event);
  const name = nameOf ? nameOf(event) : event.type;
  applyRule(out, rules.get(name as string), event, name, text);
  if (!terminated) out.warn('UNTERMINATED_LAST_LINE', 'the last line has no end of line');
}

// Returns the object on a line, or undefined. Ignores colour codes around it.
export function decodeLine(out: Emitter, text: string): JsonObject | undefined {
  let value = parseJson(text);
  if (value === undefined && text.includes('\u001b')) {
    out.note('ANSI_SEQUENCES');
    value = parseJson(stripVTControlCharacters(text));
  }
  return isObject(value) ? value : undefined;
}

// Applies a rule to a decoded line; a line that turns out to be unusable leaves only its raw text.
function applyRule(
  out: Emitter,
  rule: Rule | undefined,
  event: JsonObject,
  name: Json | undefined,
  text: string,
): void {
  const mark = out.mark();
  out.line = text;
  let drift: Drift | undefined;
  try {
    drift = rule ? rule(event) : unknownType(textOf(name));
  } catch (error) {
    // JSON.parse reads any depth, JSON.stringify does not.
    if (!(error instanceof RangeError)) throw error;
    out.rewind(mark);
    out.fallback(text, 'NESTING_TOO_DEEP', 'the JSON is nested too deeply for an event');
    return;
  }
  if (drift) {
    out.rewind(mark);
    fallBack(out, drift, textOf(name), text);
  } else out.hit();
}

function fallBack(out: Emitter, drift: Drift, name: string, text: string): void {
  if (drift.code === 'UNKNOWN_EVENT_TYPE')
    out.fallback(text, drift.code, `no rule for event type ${drift.name}`, { event_type: drift.name });
  else
    out.fallback(text, drift.code, `field ${drift.name} is missing or has another shape`, {
      event_type: name.slice(0, 200),
      path: drift.name,
    });
}

function textOf(name: Json | undefined): string {
  return typeof name === 'string' ? name : '(none)';
}

export function undecodable(out: Emitter, text: string, terminated: boolean): void {
  if (text.includes('\0')) out.fallback(text, 'NUL_BYTES', 'a line with NUL bytes is not JSON');
  else if (!terminated) out.fallback(text, 'LINE_TRUNCATED', 'the stream ends in the middle of a line');
  else out.fallback(text, 'LINE_UNDECODABLE', 'the line is not a JSON object');
}
