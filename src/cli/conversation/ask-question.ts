// Asks a person one question on the terminal until they answer, leave it, cancel the run, or the question stops
// waiting. Sends nothing itself.
import { createDialogue, type DialogueResult } from '../../terminal/answer.js';
import type { Question } from '../../terminal/question-text.js';
import { paint } from '../../terminal/style.js';
import type { LineAsker } from './ask.js';
import type { Io } from '../io.js';
import { QuestionPages } from './question-pages.js';
import { styleOf } from '../style.js';

export type Reply = Extract<DialogueResult, { readonly kind: 'reply' | 'finish' }>;
export type Outcome =
  | Reply
  | { readonly kind: 'later' }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'interrupt' }
  | { readonly kind: 'news' };

export interface AskOptions {
  readonly question: Question;
  readonly asker: LineAsker;
  // Resolves when the question no longer waits.
  readonly news?: Promise<void>;
}

// Returns a function that asks until the person has decided. It can be called again if the decision could not be sent.
export function prepareQuestion({ question, asker, news }: AskOptions, io: Io): () => Promise<Outcome> {
  const pages = new QuestionPages(question, styleOf(io), io);
  return async () => {
    const dialogue = createDialogue(question, pages);
    for (;;) {
      const left = pages.left();
      if (left !== null) io.stdout.write(`${paint(styleOf(io), 'dim', `… ${left}`)}\n`);
      const typed = await asker.ask(dialogue.prompt(), news);
      if (typed.kind === 'news' || typed.kind === 'interrupt') return { kind: typed.kind };
      if (typed.kind === 'end') return { kind: 'later' };
      const result = dialogue.give(typed.text);
      if (result.kind === 'problem') io.stderr.write(`${result.message}\n`);
      else if (result.kind === 'page') io.stdout.write(`${pages.next()}\n`);
      else if (result.kind !== 'more') return result;
    }
  };
}

// The reply in the form that the orchestrator accepts.
export function replyOf(interactionId: string, reply: Reply) {
  if (reply.kind === 'finish') return { interaction_id: interactionId, finish: true };
  return { interaction_id: interactionId, response: reply.response, ...(reply.review ? { review: reply.review } : {}) };
}
