// What an engine is told in a turn: the request with the rules of asking once, later the person's answer.
import type { Json } from '../kernel/json.js';
import type { ExecutionMode } from './attempt.js';

const HOW_TO_ASK = `

---
You work in a conversation with a person who may be away. If you need a decision, call the tool ask_human if you have it, and
then end your turn. Without that tool, end your message with a JSON object {"ask_user":{"prompt":"…","options":["…"]}}.
When everything is done, end your message with {"done":true,"result":…}.`;

const DO_NOT_ASK = `

---
Nobody is there to answer questions. Decide yourself and do not ask.`;

export function buildFirstPrompt(mode: ExecutionMode, prompt: string): string {
  return prompt + (mode === 'interactive' ? HOW_TO_ASK : DO_NOT_ASK);
}

// Engines refuse an empty prompt, but a person may well leave the answer empty.
const EMPTY_ANSWER = '(the answer was left empty)';

export function buildReplyPrompt(response: Json): string {
  const text = typeof response === 'string' ? response : JSON.stringify(response);
  return text.trim() === '' ? EMPTY_ANSWER : text;
}

// The words for an answer that nobody gave.
export const NOBODY_ANSWERED = 'Nobody answered in time. Decide yourself, say what you decided, and go on.';
