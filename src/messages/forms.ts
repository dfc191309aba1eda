// The forms that our schemas ask for. A schema library carries a rule only as a text, so each text is registered with
// its phrase, by which it is found again for other languages.
import type { Phrase } from '../kernel/fill-template.js';
import { phrase, textOf, type PhraseName } from './phrase.js';

const forms = new Map<string, Phrase>();

// Returns the English text of a form, for the schema. Called for constants only.
export function formText<N extends PhraseName>(...form: Parameters<typeof phrase<N>>): string {
  const text = textOf(phrase(...form));
  forms.set(text, phrase(...form));
  return text;
}

// A text that is no form of ours stays as it is, for instance the description in a schema of a caller.
export function formOf(text: string): Phrase | string {
  return forms.get(text) ?? text;
}
