// Message templates with named values: "There is no run {run}." A message is written once, in contract/errors.json; the
// code supplies the values.
import { invariant } from './invariant.js';

type Name<T extends string> = T extends `${string}{${infer N}}${infer Rest}` ? N | Name<Rest> : never;

export type Values = Readonly<Record<string, string | number>>;

// The argument list after a template: empty if the template has no values.
export type ValuesOf<T extends string, V = string | number> = [Name<T>] extends [never]
  ? []
  : [values: Readonly<Record<Name<T>, V>>];

export function fillTemplate(template: string, values: Values): string {
  return template.replaceAll(/\{([a-z_]+)\}/g, (_, name: string) => {
    const value = Object.hasOwn(values, name) ? values[name] : undefined;
    invariant(value !== undefined, `the message template has a value for {${name}}`);
    return String(value);
  });
}
