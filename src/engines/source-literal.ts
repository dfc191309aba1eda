// Returns the JSON text of a string by cutting it out of its line instead of serialising it again: for long answers and
// tool output, serialising is the slow part. The line has been decoded, so it is valid JSON; the cut text is checked
// against the value, so it is never wrong.

import { isEscaped, parseJson } from '../kernel/json.js';

// `opening` is `"member":"` as it appears in the line. In any doubt, falls back to JSON.stringify.
export function sourceLiteral(line: string, opening: string, value: string): string {
  const at = line.indexOf(opening);
  if (at < 0) return JSON.stringify(value);
  const start = at + opening.length - 1;
  const quote = line.indexOf('"', start + 1);
  // No quote and no escape inside: the literal and the value are the same characters.
  if (quote === start + 1 + value.length) {
    const escape = line.indexOf('\\', start);
    if ((escape < 0 || escape > quote) && line.slice(start + 1, quote) === value) return line.slice(start, quote + 1);
  }
  const end = literalEnd(line, quote);
  if (end < 0) return JSON.stringify(value);
  const literal = line.slice(start, end + 1);
  return parseJson(literal) === value ? literal : JSON.stringify(value);
}

// Returns the closing quote of a string literal, searching from its first inner quote; -1 if there is none.
function literalEnd(line: string, quote: number): number {
  while (quote >= 0 && isEscaped(line, quote)) quote = line.indexOf('"', quote + 1);
  return quote;
}
