// Builds the prompt of a turn: first the request with the rules of asking, later the person's answer.
import type { Json } from '../kernel/json.js';
import type { ExecutionMode } from './attempt.js';

const howToAsk = (afterCall: string): string =>
  '\n\n---\n' +
  'You work in a conversation with a person who may be away. If you need a decision, call the tool ask_human if you ' +
  `have it${afterCall}. Without that tool, end your message with a JSON object ` +
  '{"ask_user":{"prompt":"…","options":["…"]}}.\n' +
  'When everything is done, end your message with {"done":true,"result":…}.';

const HOW_TO_ASK = howToAsk(', and\nthen end your turn');
// Where the call lasts until it is answered.
const HOW_TO_WAIT = howToAsk(': its\nresult is the answer');

const DO_NOT_ASK = `

---
Nobody is there to answer questions. Decide yourself and do not ask.`;

export function buildFirstPrompt(mode: ExecutionMode, prompt: string, waitsInCall = false): string {
  if (mode !== 'interactive') return prompt + DO_NOT_ASK;
  return prompt + (waitsInCall ? HOW_TO_WAIT : HOW_TO_ASK);
}

// Engines refuse an empty prompt, but a person may well leave the answer empty.
const EMPTY_ANSWER = '(the answer was left empty)';

export function buildReplyPrompt(response: Json): string {
  const text = typeof response === 'string' ? response : JSON.stringify(response);
  return text.trim() === '' ? EMPTY_ANSWER : text;
}

// The words for an answer that nobody gave.
export const NOBODY_ANSWERED = 'Nobody answered in time. Decide yourself, say what you decided, and go on.';
