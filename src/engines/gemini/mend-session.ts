// Gemini 0.61 sends every tool result twice after a resume, and services that count results refuse that. The stored
// session contains each result twice: in the call, and in the user's part that answers it. The first one is removed
// before each resume.
import { asObject, asString, isObject, parseJson, type Json, type JsonObject } from '../../kernel/json.js';

export function mendSession(session: string): string {
  const lines = session.split('\n');
  const answered = new Set(lines.flatMap((line) => messagesOf(parseJson(line)).flatMap(answeredCalls)));
  if (answered.size === 0) return session;
  return lines.map((line) => mendLine(line, answered)).join('\n');
}

// A line is a message, or sets several at once.
function messagesOf(line: Json | undefined): JsonObject[] {
  if (!isObject(line)) return [];
  const set = asObject(line.$set)?.messages;
  return [line, ...(Array.isArray(set) ? set.filter(isObject) : [])];
}

// The ids of the calls that a message of the user answers.
function answeredCalls({ type, content }: JsonObject): string[] {
  if (type !== 'user' || !Array.isArray(content)) return [];
  return content.flatMap((part) => asString(asObject(asObject(part)?.functionResponse)?.id) ?? []);
}

// A line without duplicates stays unchanged, byte for byte.
function mendLine(line: string, answered: ReadonlySet<string>): string {
  const parsed = parseJson(line);
  let mended = false;
  for (const message of messagesOf(parsed)) {
    if (message.type !== 'gemini' || !Array.isArray(message.toolCalls)) continue;
    for (const call of message.toolCalls) {
      if (!isObject(call) || !('result' in call) || !answered.has(asString(call.id) ?? '')) continue;
      delete call.result;
      mended = true;
    }
  }
  return mended ? JSON.stringify(parsed) : line;
}
