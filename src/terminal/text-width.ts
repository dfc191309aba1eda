// How many columns a text takes. The tables that know it of every character take longer to load than a short command to
// run: they are loaded by the first text that needs them.
import { createRequire } from 'node:module';

type Measure = (text: string) => number;

const load = createRequire(import.meta.url);
// A cut line ends with the ellipsis, so it is common even where all else is plain.
const PLAIN = /^[ -~…]*$/;
let measure: Measure | undefined;

export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  measure ??= (load('string-width') as { readonly default: Measure }).default;
  return measure(text);
}
