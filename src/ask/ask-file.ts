// What the question tool wrote down in a turn, one JSON object a line: that the engine listed it, and each question, on the disk
// before the engine hears that it was taken. The first witness of a question; the engine's own output is the second.
import { closeSync, existsSync, fdatasyncSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { isObject, parseJson, type Json, type JsonObject } from '../kernel/json.js';

export type AskRecord = { readonly type: 'listed' } | { readonly type: 'asked'; readonly question: JsonObject };

export function appendAsk(path: string, nonce: string, record: AskRecord): void {
  // Begins with a new line: a record before it may have been cut off.
  const bytes = Buffer.from(`\n${JSON.stringify({ ...record, nonce })}\n`);
  const file = openSync(path, 'a', 0o600);
  try {
    writeFileSync(file, bytes);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
}

export interface Asks {
  // The engine has seen the tool.
  readonly listed: boolean;
  // In their order, as they were asked.
  readonly questions: readonly JsonObject[];
}

// Only what was written with this nonce counts; null: any, the file belongs to one turn. A line that was cut off is no line: the engine was never told that its
// question was taken.
export function readAsks(path: string, nonce: string | null): Asks {
  const records = existsSync(path) ? readFileSync(path, 'utf8').split('\n').map(parseJson).filter((record) => isOurs(record, nonce)) : [];
  return {
    listed: records.some(({ type }) => type === 'listed'),
    questions: records.flatMap(({ type, question }) => (type === 'asked' && isObject(question) ? [question] : [])),
  };
}

function isOurs(record: Json | undefined, nonce: string | null): record is JsonObject {
  return isObject(record) && (nonce === null || record.nonce === nonce);
}
