// Parts of a request that all models read in the same way: hidden keys, lists of objects, and texts that come from the
// CLI.
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { isObject, parseJson, type Json, type JsonObject } from '../../src/kernel/json.js';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  // The values of keys are replaced by (hidden).
  readonly headers: Readonly<Record<string, string>>;
  // Returns an empty object for other values.
  readonly body: JsonObject;
}

const SECRET_HEADERS = new Set(['authorization', 'x-goog-api-key', 'api-key', 'cookie']);

export async function readRequest(request: IncomingMessage): Promise<RecordedRequest> {
  const body = parseJson(await text(request));
  const headers = Object.entries(request.headers).map(([name, value]) => [
    name,
    SECRET_HEADERS.has(name) ? '(hidden)' : String(value),
  ]);
  return {
    method: request.method ?? '',
    path: request.url ?? '',
    headers: Object.fromEntries(headers),
    body: isObject(body) ? body : {},
  };
}

export function listObjects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

// Text of the CLI between the prompts, in one element: its working folder, or that a turn was aborted.
export function isContext(text: string): boolean {
  return /^\s*<(\w+_\w+)>[^]*<\/\1>\s*$/.test(text);
}
