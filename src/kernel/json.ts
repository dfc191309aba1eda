// JSON types, and checks for values that come from outside.

export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

// Returns undefined for text that is not JSON, which is normal here and not an error.
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

// JSON.parse accepts any depth, but JSON.stringify does not. Values nested deeper than anyone writes by hand are cut
// off.
const MAX_DEPTH = 200;

// Its own recursion is limited to the same depth.
export function isDeeperThan(value: unknown, depth = MAX_DEPTH): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return depth === 0 || Object.values(value).some((item) => isDeeperThan(item, depth - 1));
}

export function clipDepth(value: Json, depth = MAX_DEPTH): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (depth === 0) return null;
  if (Array.isArray(value)) return value.map((item) => clipDepth(item, depth - 1));
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, clipDepth(item, depth - 1)]));
}

// Whether a backslash escapes the character at this index of a JSON text.
export function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === '\\') backslashes += 1;
  return backslashes % 2 === 1;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function asString(value: Json | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

export function asInteger(value: Json | undefined): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined;
}

export function asObject(value: Json | undefined): JsonObject | undefined {
  return isObject(value) ? value : undefined;
}

// Returns a count that an engine reported, if it is a non-negative safe integer.
export function asCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

// Returns the same text for equal values, whatever the order of their members. Ignores undefined members.
export function canonicalText(value: unknown): string {
  return JSON.stringify(sortKeys(value));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, item]) => item !== undefined)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sortKeys(item)]),
  );
}
