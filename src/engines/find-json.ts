// Finds JSON inside text that should have been JSON, or at the end of other text.
import { isEscaped, isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

// Model text can be long and full of braces, so the search has a limit.
const MAX_TRIES = 200;
const MAX_SCANNED_CHARS = 8 * 1024 * 1024;

export interface JsonFragment {
  readonly value: Json;
  readonly start: number;
  readonly end: number;
}

export interface FencedBlock {
  readonly value: Json;
  readonly firstLine: number;
  readonly lastLine: number;
}

// Returns the fenced blocks of a text that decode, in order. A block ends at a line that ends with the fence. A fence
// inside a JSON string cannot be such a line unless the block decodes only without it.
export function findFencedJson(text: string): FencedBlock[] {
  const blocks: FencedBlock[] = [];
  let block: string[] | null = null;
  let firstLine = 0;
  let budget = MAX_SCANNED_CHARS;
  for (const [lastLine, line] of text.split('\n').entries()) {
    if (block === null) {
      if (/^\s*```[^`]*$/.test(line)) {
        block = [];
        firstLine = lastLine;
      }
      continue;
    }
    const closing = line.trimEnd().endsWith('```');
    if (!closing) {
      block.push(line);
      continue;
    }
    const content: string = [...block, line.trimEnd().slice(0, -3)].join('\n');
    budget -= content.length + 1;
    if (budget < 0) break;
    const value = parseJson(content);
    if (value !== undefined) blocks.push({ value, firstLine, lastLine });
    // A fence on its own line ends any block; a fence after other text ends only a block that decodes.
    if (value !== undefined || line.trim() === '```') block = null;
    else block.push(line);
  }
  return blocks;
}

// Returns the first object or array inside a text that decodes and that the caller wants.
export function findJsonFragment(
  text: string,
  wanted: (value: Json) => boolean = () => true,
): JsonFragment | undefined {
  let budget = MAX_SCANNED_CHARS;
  let at = nextOpening(text, 0);
  for (let tries = 0; at >= 0 && tries < MAX_TRIES && budget > 0; tries += 1) {
    const end = balancedEnd(text, at);
    budget -= (end < 0 ? text.length : end) - at;
    const value = end < 0 ? undefined : parseJson(text.slice(at, end));
    if (value !== undefined && wanted(value)) return { value, start: at, end };
    // Skips a fragment that decodes as a whole; one that does not may contain another.
    at = nextOpening(text, value === undefined ? at + 1 : end);
  }
  return undefined;
}

// Returns the object at the end of a text, or undefined.
export function findTrailingObject(text: string): JsonObject | undefined {
  const trimmed = text.trimEnd();
  const start = trailingStart(trimmed);
  const value = start < 0 ? undefined : parseJson(trimmed.slice(start));
  return isObject(value) ? value : undefined;
}

// Returns where the object at the end of the text begins, reading backwards and skipping strings; -1 if there is none.
function trailingStart(text: string): number {
  if (!text.endsWith('}')) return -1;
  let depth = 0;
  let quoted = false;
  for (let at = text.length - 1; at >= 0; at -= 1) {
    const char = text[at];
    if (char === '"' && !isEscaped(text, at)) quoted = !quoted;
    else if (quoted) continue;
    else if (char === '}' || char === ']') depth += 1;
    else if (char === '{' || char === '[') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return -1;
}

function nextOpening(text: string, from: number): number {
  const brace = text.indexOf('{', from);
  const bracket = text.indexOf('[', from);
  if (brace < 0 || bracket < 0) return Math.max(brace, bracket);
  return Math.min(brace, bracket);
}

// Returns where the value that opens at `start` closes, skipping strings; -1 if it never closes.
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
