// Messages whose values may be phrases, or several sentences: in English with the phrases beside them, and from these
// in other languages.
import { CLIENT_MESSAGES } from '../contract/client-messages.js';
import { REQUEST_MESSAGES, RUN_MESSAGES } from '../contract/error-codes.js';
import {
  fillTemplate,
  type NameIn,
  type Phrase,
  type Problem,
  type Term,
  type Values,
} from '../kernel/fill-template.js';
import { inOne, isPhrase, renderSentences, renderTerm, sentencesOf, textOf, type Catalogue } from './phrase.js';

type Value = string | number | Phrase | readonly Phrase[];

// The argument list after a template: empty if the template has no values.
export type ValuesOf<T extends string> = [NameIn<T>] extends [never]
  ? []
  : [values: Readonly<Record<NameIn<T>, Value>>];

// The values of a message with the English text of each phrase, and the phrases beside them.
export function toValues(values: Readonly<Record<string, Value>>): Values {
  const problems: Problem[] = [];
  const texts: Record<string, string | number> = {};
  for (const [value, item] of Object.entries(values)) {
    if (typeof item === 'string' || typeof item === 'number') texts[value] = item;
    else {
      const phrases = isPhrase(item) ? [item] : item;
      texts[value] = sentencesOf(phrases);
      for (const { rule, values: terms } of phrases)
        problems.push(terms === undefined ? { value, rule } : { value, rule, values: terms });
    }
  }
  return problems.length === 0 ? texts : { ...texts, problems };
}

// The same message from the texts of another language; null if it has no such message.
export function translate(name: string, values: Values, catalogue: Catalogue): string | null {
  const translated = Object.entries(values).map(([value, text]) => {
    const parts = problemsOf(values, value);
    return [value, parts.length === 0 ? text : (renderSentences(parts, catalogue) ?? text)];
  });
  return renderTerm({ rule: name, values: Object.fromEntries(translated) as Record<string, Term> }, catalogue);
}

interface Explained {
  readonly code: string;
  readonly message: string;
  readonly values?: Values | undefined;
}

const MESSAGES: Readonly<Record<string, string>> = { ...REQUEST_MESSAGES, ...RUN_MESSAGES, ...CLIENT_MESSAGES };

// Errors that were stored or sent do not have the name of their message, so it is found by its English text. Null: it
// was written by another version, or not by a template. Total, because errors also come from other programs.
export function findMessage({ code, message, values = {} }: Explained): string | null {
  for (const [name, template] of Object.entries(MESSAGES))
    if ((name === code || name.startsWith(`${code}.`)) && fits(template, { message, values })) return name;
  return null;
}

function fits(template: string, { message, values }: { readonly message: string; readonly values: Values }): boolean {
  const names = Array.from(template.matchAll(/\{([a-z_]+)\}/g), ([, name = '']) => name);
  const isText = (name: string): boolean =>
    Object.hasOwn(values, name) && ['string', 'number'].includes(typeof values[name]);
  return names.every(isText) && fillTemplate(template, values) === message;
}

// An error as a part of another message.
export function phraseOfError(error: Explained): Phrase | string {
  const name = findMessage(error);
  if (name === null) return error.message;
  const values = Object.entries(error.values ?? {}).flatMap(([value, text]): [string, Term][] => {
    if (Array.isArray(text)) return [];
    const parts = problemsOf(error.values ?? {}, value);
    return [[value, parts.length === 0 ? text : inOne(parts)]];
  });
  const phrase = { rule: name, values: Object.fromEntries(values) };
  // A part never reads differently than the whole message.
  return textOf(phrase) === error.message ? phrase : error.message;
}

function problemsOf({ problems }: Values, value: string): Phrase[] {
  if (!Array.isArray(problems)) return [];
  return problems.flatMap((problem: unknown) => {
    if (!isPhrase(problem) || !('value' in problem) || problem.value !== value) return [];
    return [{ rule: problem.rule, ...(problem.values === undefined ? {} : { values: problem.values }) }];
  });
}
