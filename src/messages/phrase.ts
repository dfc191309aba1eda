// Phrases: the parts of messages that Parley itself words, as a name of contract/phrases.json and values. An error
// carries them beside their English text, so that a program can word the whole message in another language.
import { CLIENT_MESSAGES } from '../contract/client-messages.js';
import { REQUEST_MESSAGES, RUN_MESSAGES } from '../contract/error-codes.js';
import { PHRASES } from '../contract/phrases.js';
import { invariant } from '../kernel/invariant.js';
import type { Message, MessageValue } from '../kernel/message.js';
import type { NameIn, Phrase, Term } from '../kernel/fill-template.js';

export type PhraseName = keyof typeof PHRASES;

type TermsOf<T extends string> = [NameIn<T>] extends [never] ? [] : [values: Readonly<Record<NameIn<T>, Term>>];

// The texts of a language, by the name of the phrase or message.
export interface Catalogue {
  readonly texts: Readonly<Partial<Record<string, string>>>;
  // No space between two Chinese texts, although a template has one for a value in Latin letters.
  readonly isDense: boolean;
}

const ENGLISH: Catalogue = {
  texts: { ...REQUEST_MESSAGES, ...RUN_MESSAGES, ...CLIENT_MESSAGES, ...PHRASES },
  isDense: false,
};
// No phrase of ours is nested more deeply; a phrase from outside may be.
const MAX_DEPTH = 20;
const MAX_LISTED = 100;

export function phrase<N extends PhraseName>(rule: N, ...[values]: TermsOf<(typeof PHRASES)[N]>): Phrase {
  return values === undefined ? { rule } : { rule, values };
}

export function isPhrase(value: unknown): value is Phrase {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && 'rule' in value;
}

// The English text of a phrase that Parley made.
export function textOf(term: Term): string {
  const text = renderTerm(term, ENGLISH);
  invariant(text !== null, `the phrases have a text: ${JSON.stringify(term)}`);
  return text;
}

// A phrase as a value of a message (kernel/message.ts).
export function messageOf(phrase: Phrase): Message {
  const values = Object.entries(phrase.values ?? {}).map(([name, term]) => [name, valueOf(term)] as const);
  return { key: phrase.rule, values: Object.fromEntries(values), text: textOf(phrase) };
}

function valueOf(term: Term): MessageValue {
  if (typeof term !== 'object') return term;
  return isPhrase(term) ? messageOf(term) : textOf(term);
}

export function sentencesOf(phrases: readonly Phrase[]): string {
  const text = renderSentences(phrases, ENGLISH);
  invariant(text !== null, `the sentences have a text: ${JSON.stringify(phrases)}`);
  return text;
}

// Several sentences as a part of another one.
export function inOne(sentences: readonly Phrase[]): Phrase {
  const [first, ...rest] = sentences;
  invariant(first, 'there is a sentence');
  return rest.reduce((all, sentence) => phrase('sentence_more', { sentences: all, sentence }), first);
}

// Null: a name or a value is unknown in this language. Total, because phrases also come from other programs.
export function renderTerm(term: unknown, catalogue: Catalogue, depth = MAX_DEPTH): string | null {
  if (typeof term === 'string' || typeof term === 'number') return String(term);
  if (depth === 0 || typeof term !== 'object' || term === null) return null;
  if (Array.isArray(term)) return renderChoice(term, catalogue, depth);
  const { rule, values = {} } = term as { readonly rule?: unknown; readonly values?: unknown };
  if (typeof rule !== 'string' || typeof values !== 'object' || values === null) return null;
  if (!Object.hasOwn(catalogue.texts, rule)) return null;
  return fill(catalogue.texts[rule] ?? '', values as Readonly<Record<string, unknown>>, catalogue, depth);
}

export function renderSentences(sentences: readonly unknown[], catalogue: Catalogue): string | null {
  if (sentences.length > MAX_LISTED) return null;
  const texts = sentences.map((sentence) => renderTerm(sentence, catalogue));
  if (texts.some((text) => text === null)) return null;
  return texts.reduce(
    (all, sentence) =>
      all === null
        ? sentence
        : fill(catalogue.texts['sentence_more'] ?? '', { sentences: all, sentence }, catalogue, 1),
    null,
  );
}

function renderChoice(items: readonly unknown[], catalogue: Catalogue, depth: number): string | null {
  if (items.length > MAX_LISTED) return null;
  const texts = items.map((item) => renderTerm(item, catalogue, depth - 1));
  if (texts.length === 0 || texts.some((text) => text === null)) return null;
  return texts.reduce((all, item, index) => {
    const join = index === texts.length - 1 ? 'list_last' : 'list_more';
    return index === 0 ? item : fill(catalogue.texts[join] ?? '', { items: all, item }, catalogue, 1);
  });
}

// A value cannot change the template: the pieces of the template are split off first.
function fill(
  template: string,
  values: Readonly<Record<string, unknown>>,
  catalogue: Catalogue,
  depth: number,
): string | null {
  const pieces = template.split(/\{([a-z_]+)\}/);
  let text = '';
  for (const [index, piece] of pieces.entries()) {
    if (index % 2 === 0) {
      text = isFullStopBeforeBracket(text, piece) ? `${text.slice(0, -1)}${piece}` : join(text, piece, catalogue);
    } else {
      const value = Object.hasOwn(values, piece) ? renderTerm(values[piece], catalogue, depth - 1) : null;
      if (value === null) return null;
      text = join(text, value, catalogue);
    }
  }
  return text;
}

// A sentence that is an example in brackets loses its full stop.
function isFullStopBeforeBracket(text: string, next: string): boolean {
  return /[.?。？]$/.test(text) && /^[)）]/.test(next);
}

const DENSE = /[\u3000-\u303f\u3400-\u9fff\uff00-\uff65]/;

function join(left: string, right: string, { isDense }: Catalogue): string {
  if (!isDense) return left + right;
  if (left.endsWith(' ') && DENSE.test(left.at(-2) ?? '') && DENSE.test(right[0] ?? ''))
    return left.slice(0, -1) + right;
  if (right.startsWith(' ') && DENSE.test(right[1] ?? '') && DENSE.test(left.at(-1) ?? ''))
    return left + right.slice(1);
  return left + right;
}
