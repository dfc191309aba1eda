// The record of the question tool in one turn, one JSON object per line: that the engine listed the tool, and each
// question. A question is on the disk before the engine gets the tool's result. This file is the first witness of a
// question; the engine's output is the second.
import { closeSync, fdatasyncSync, writeFileSync } from 'node:fs';
import { openToAppendSync, readText, UnsafeFileError } from '../files/read-file.js';
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

export type AskRecord = { readonly type: 'listed' } | { readonly type: 'asked'; readonly question: JsonObject };

export function appendAsk(path: string, nonce: string, record: AskRecord): void {
  // Starts with a newline, because the record before it may have been cut off.
  const bytes = Buffer.from(`\n${JSON.stringify({ ...record, nonce })}\n`);
  const file = openToAppendSync(path);
  try {
    writeFileSync(file, bytes);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

// Enough for thousands of long questions.
const MAX_BYTES = 16 * 1024 * 1024;

export interface Asks {
  // Whether the engine has listed the tool.
  readonly listed: boolean;
  // In the order in which they were asked.
  readonly questions: readonly JsonObject[];
}

// Reads only records with this nonce; null reads all, for a file that belongs to one turn. Ignores a line that was cut
// off: the engine never got the tool's result for that question. The engine's process can replace the file, so anything
// but a regular file within the size limit counts as no questions.
export async function readAsks(path: string, nonce: string | null): Promise<Asks> {
  const text = await readText(path, { maxBytes: MAX_BYTES }).catch((error: unknown) => {
    if (error instanceof UnsafeFileError) return null;
    throw error;
  });
  const records = (text ?? '')
    .split('\n')
    .map(parseJson)
    .filter((record) => isOurs(record, nonce));
  return {
    listed: records.some(({ type }) => type === 'listed'),
    questions: records.flatMap(({ type, question }) => (type === 'asked' && isObject(question) ? [question] : [])),
  };
}

function isOurs(record: Json | undefined, nonce: string | null): record is JsonObject {
  return isObject(record) && (nonce === null || record.nonce === nonce);
}
