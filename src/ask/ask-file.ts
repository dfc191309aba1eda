// What the question tool wrote down in a turn, one JSON object a line: that the engine listed it, and each question, on
// the disk before the engine hears that it was taken. The first witness of a question; the engine's own output is the
// second.
import { closeSync, fdatasyncSync, writeFileSync } from 'node:fs';
import { openToAppendSync, readText, UnsafeFileError } from '../files/read-file.js';
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

export type AskRecord = { readonly type: 'listed' } | { readonly type: 'asked'; readonly question: JsonObject };

export function appendAsk(path: string, nonce: string, record: AskRecord): void {
  // Begins with a new line: a record before it may have been cut off.
  const bytes = Buffer.from(`\n${JSON.stringify({ ...record, nonce })}\n`);
  const file = openToAppendSync(path);
  try {
    writeFileSync(file, bytes);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

// Thousands of long questions.
const MAX_BYTES = 16 * 1024 * 1024;

export interface Asks {
  // The engine has seen the tool.
  readonly listed: boolean;
  // In their order, as they were asked.
  readonly questions: readonly JsonObject[];
}

// Only what was written with this nonce counts; null: any, the file belongs to one turn. A line that was cut off is no
// line: the engine was never told that its question was taken. The engine's process may have put anything in its place:
// what is no file of a sensible size holds no question.
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
