// Reads what an agent reports about its turn in its last message: {"ask_user":{…}} or {"done":true,"result":…}. The
// fallback for engines without our question tool. Only an object at the end of the message counts, not one that is
// quoted earlier.
import { clipDepth, isObject, type Json } from '../kernel/json.js';
import { mergeQuestions, parseQuestion, type Question } from '../run/interaction.js';
import { findTrailingObject } from './find-json.js';

export interface Envelope {
  readonly question: Question | null;
  readonly done: { readonly result: Json } | null;
}

const NONE: Envelope = { question: null, done: null };

export function readEnvelope(message: string | null): Envelope {
  if (message === null || !(message.includes('"ask_user"') || message.includes('"done"'))) return NONE;
  const body = findTrailingObject(withoutClosingFence(message));
  if (!body) return NONE;
  const question = readQuestion(body.ask_user);
  if (question) return { question, done: null };
  if (body.done === true) return { question: null, done: { result: clipDepth(body.result ?? null) } };
  return NONE;
}

// `false`, an empty text or an empty object means that there is no question.
function readQuestion(asked: Json | undefined): Question | undefined {
  if (Array.isArray(asked))
    return mergeQuestions(asked.flatMap((each) => (Array.isArray(each) ? [] : (readQuestion(each) ?? []))));
  const asks =
    typeof asked === 'string'
      ? asked.trim() !== ''
      : isObject(asked) &&
        ['prompt', 'question', 'message', 'fields', 'options'].some((member) => Boolean(asked[member]));
  return asks ? parseQuestion(asked, 'envelope') : undefined;
}

function withoutClosingFence(message: string): string {
  const trimmed = message.trimEnd();
  return trimmed.endsWith('```') ? trimmed.slice(0, -3) : trimmed;
}
