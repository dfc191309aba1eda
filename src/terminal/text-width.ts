// Measures how many columns a text takes. The character tables take longer to load than a short command takes to run,
// so the first text that needs them loads them.
import { createRequire } from 'node:module';

type Measure = (text: string) => number;

const load = createRequire(import.meta.url);
// Includes the ellipsis, because many plain lines are cut.
const PLAIN = /^[ -~…]*$/;
let measure: Measure | undefined;

export function textWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  measure ??= (load('string-width') as { readonly default: Measure }).default;
  return measure(text);
}
