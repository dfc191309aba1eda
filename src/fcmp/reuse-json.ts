// The JSON text of data that the conversation shows unchanged. A new event was serialized when its RASP line was built;
// doing it again would be the most expensive part of the fold. The result is the same text as without that.
import type { JsonText } from '../rasp/draft.js';

export type IdMember = 'message_id' | 'call_id';

// An escape that JSON.stringify would not have written. It also finds some that it would have: these cost only time.
const UNUSUAL_ESCAPE = /\\(?:[^"\\bfnrtu]|u(?!00(?:0[0-7bef]|1[0-9a-f])))/;

// A shorter text is written faster in one part.
const LEAST_PARTED_CHARS = 2048;

// `json` is the text of an object; if it has three parts, the second one is a string as the engine has written it.
// Returns what JSON.stringify gives for the object, with the id of the item as its first member unless there is none.
export function reuseJson(json: JsonText, idMember: IdMember | null, itemId: string | null): JsonText {
  const id = idMember === null ? '{' : `{"${idMember}":${JSON.stringify(itemId)},`;
  if (typeof json === 'string') return idMember === null ? json : id + json.slice(1);
  const [before, , after] = json;
  const long = canonical(json[1]);
  const opening = id + before.slice(1);
  return long.length < LEAST_PARTED_CHARS ? opening + long + after : [opening, long, after];
}

function canonical(literal: string): string {
  return literal.includes('\\') && UNUSUAL_ESCAPE.test(literal) ? JSON.stringify(JSON.parse(literal)) : literal;
}
