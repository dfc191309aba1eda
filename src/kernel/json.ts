// JSON values as types, and the few questions asked about values that came from outside.

export type Json = string | number | boolean | null | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

// Text that is not JSON is a normal answer here, not an error.
export function parseJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

// JSON.parse reads any depth, JSON.stringify does not: what lies deeper than anyone writes by hand is cut off.
const MAX_DEPTH = 200;

// Recurses no deeper than that itself.
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

// Is the character at this place of a JSON text escaped by a backslash before it?
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

// Counts from engines: only a whole, non-negative, exact number counts as one.
export function asCount(value: Json | undefined): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

// The same for values whose members stand in another order; members that are undefined do not count.
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
