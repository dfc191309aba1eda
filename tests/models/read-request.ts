// What all models read alike from a request: who may not be named, lists of objects, and which texts are no person's.
import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { isObject, parseJson, type Json, type JsonObject } from '../../src/kernel/json.js';

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  // The values of keys are replaced by (hidden).
  readonly headers: Readonly<Record<string, string>>;
  // An empty object if it was none.
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

// What a CLI itself puts between the prompts, in one element: where it works, that a turn was aborted.
export function isContext(text: string): boolean {
  return /^\s*<(\w+_\w+)>[^]*<\/\1>\s*$/.test(text);
}
