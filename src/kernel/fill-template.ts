// Message templates with named values: "There is no run {run}." A message is written once, in contract/errors.json; the
// code supplies the values. This file depends on no message, because pages also use it.
import { invariant } from '../kernel/invariant.js';

export type NameIn<T extends string> = T extends `${string}{${infer N}}${infer Rest}` ? N | NameIn<Rest> : never;

/** A phrase of Parley: `rule` is a name of contract/phrases.json, or of a whole message (`CODE` or `CODE.name`). */
export type Phrase = { rule: string; values?: { [name: string]: Term } };

/** A value of a phrase. A list is a choice: "a, b or c". */
export type Term = string | number | Phrase | Term[];

/** A phrase of a message, in the order of its sentences: `value` is the value of the message that it belongs to. */
export type Problem = { value: string } & Phrase;

/**
 * The values of a message by name, as they are stored and sent. `problems` has the phrases from which the texts among
 * them were made, for other languages.
 */
export type Values = Readonly<Record<string, string | number | Problem[]>>;

export function fillTemplate(template: string, values: Values): string {
  return template.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    invariant(value !== undefined, `the message template has a value for {${name}}`);
    return String(value);
  });
}
