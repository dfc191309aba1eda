// The text of an approval: labels of Parley, and below them text from the engine, quoted.
import type { Json } from '../kernel/json.js';

// The position after a line end; join puts a \n back.
const LINE_END = /\n|(?<=\r)(?!\n)|(?<=[\u2028\u2029])/;

// Quotes text from the engine: every line starts with a mark, so no line looks like ours, whichever characters a reader
// treats as a line end. No character is dropped; views name the invisible ones.
export function quoted(value: Json | undefined): string | null {
  if (value === undefined || value === null || value === '') return null;
  return (typeof value === 'string' ? value : JSON.stringify(value))
    .split(LINE_END)
    .map((line) => `  | ${line}`)
    .join('\n');
}

export function labelled(label: string, value: Json | undefined): string | null {
  const text = quoted(value);
  return text === null ? null : `${label}\n${text}`;
}

// A name that contains a line end is written as JSON: no part of it looks like a line of ours, and nothing of it is
// lost.
export function oneLine(text: string): string {
  if (!/[\n\r\u2028\u2029]/.test(text)) return text;
  return JSON.stringify(text).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}

export function joinLines(...lines: readonly (string | null)[]): string {
  return lines.filter((line) => line !== null && line !== '').join('\n');
}
