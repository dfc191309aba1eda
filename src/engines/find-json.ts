// Looks for JSON inside text that should have been JSON, or that only ends with it.
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

// Model text can be long and full of braces: the search gives up rather than take long.
const MAX_TRIES = 200;
const MAX_SCANNED_CHARS = 8 * 1024 * 1024;
// A closing object that is looked for behind other text is small; a large result is the whole message.
const MAX_TRAILING_CHARS = 256 * 1024;

// The fenced blocks of a text that decode, in order.
export function findFencedJson(text: string): Json[] {
  const found: Json[] = [];
  for (const match of text.matchAll(/```[a-zA-Z]*[ \t]*\r?\n([\s\S]*?)```/g)) {
    const value = parseJson(match[1] ?? '');
    if (value !== undefined) found.push(value);
  }
  return found;
}

// The first object or array inside a text that decodes.
export function findJsonFragment(text: string): Json | undefined {
  let tries = 0;
  let budget = MAX_SCANNED_CHARS;
  for (let at = nextOpening(text, 0); at >= 0 && tries < MAX_TRIES && budget > 0; tries += 1) {
    const end = balancedEnd(text, at);
    budget -= (end < 0 ? text.length : end) - at;
    const value = end < 0 ? undefined : parseJson(text.slice(at, end));
    if (value !== undefined) return value;
    at = nextOpening(text, at + 1);
  }
  return undefined;
}

// The object that a text ends with, if it does.
export function findTrailingObject(text: string): JsonObject | undefined {
  const whole = parseJson(text);
  if (isObject(whole)) return whole;
  const trimmed = text.trimEnd().slice(-MAX_TRAILING_CHARS);
  if (!trimmed.endsWith('}')) return undefined;
  let tries = 0;
  for (let at = trimmed.indexOf('{'); at >= 0 && tries < MAX_TRIES; tries += 1) {
    const value = parseJson(trimmed.slice(at));
    if (isObject(value)) return value;
    at = trimmed.indexOf('{', at + 1);
  }
  return undefined;
}

function nextOpening(text: string, from: number): number {
  const brace = text.indexOf('{', from);
  const bracket = text.indexOf('[', from);
  if (brace < 0 || bracket < 0) return Math.max(brace, bracket);
  return Math.min(brace, bracket);
}

// Where the value that opens at `start` closes, strings taken into account; -1 if it never does.
function balancedEnd(text: string, start: number): number {
  let depth = 0;
  let quoted = false;
  for (let at = start; at < text.length; at += 1) {
    const char = text[at];
    if (quoted) {
      if (char === '\\') at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}
