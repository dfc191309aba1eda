// Parses JSON with comments, as engines accept it in their settings files.
import { asObject, parseJson, type JsonObject } from '../kernel/json.js';

// Matches strings first, so that text in a string that looks like a comment is kept.
const STRING_OR_COMMENT = /"(?:[^"\\]|\\[^])*"|\/\/[^\r\n]*|\/\*[^]*?(?:\*\/|$)/g;

// Returns an empty object for text that is not a JSON object.
export function parseCommentedJson(text: string): JsonObject {
  return asObject(parseJson(text.replace(STRING_OR_COMMENT, (match) => (match.startsWith('"') ? match : ' ')))) ?? {};
}
