// Makes untrusted text harmless for a terminal: it cannot move the cursor, colour, ring, set a title or change the
// writing direction. Nothing is dropped: characters that a terminal would obey or not show are shown by name
// (visible-text). Newline and tab stay. The result does not depend on how the text was split into pieces.
import { NAME, nameInLine, nameInProse } from '../kernel/visible-text.js';
import { textWidth } from './text-width.js';

// The end of a piece whose meaning depends on the next one.
const OPEN_END = /(?:\r|[\u200c\u200d]|[\u200c\u200d]?[\ud800-\udbff])$/;

// Made at its first use: that takes longer than a short command.
let graphemes: Intl.Segmenter | undefined;

// For prose. Commands, file names and diffs are shown by exactLine and wrapExact.
export function safeText(text: string): string {
  return nameInProse(text);
}

// The same for text that arrives in pieces: holds back an end whose meaning is not known yet.
export class SafeStream {
  #rest = '';
  // The last character that was shown, on which a joiner or selector depends.
  #before = '';

  push(piece: string): string {
    const text = this.#rest + piece;
    const open = text.search(OPEN_END);
    this.#rest = open === -1 ? '' : text.slice(open);
    return this.#show(open === -1 ? text : text.slice(0, open));
  }

  end(): string {
    const rest = this.#rest;
    this.#rest = '';
    return this.#show(rest);
  }

  #show(text: string): string {
    const shown = nameInProse(text, this.#before);
    if (text !== '') this.#before = lastCharacter(text);
    return shown;
  }
}

function lastCharacter(text: string): string {
  const pair = text.codePointAt(text.length - 2) ?? 0;
  return pair > 0xffff ? text.slice(-2) : text.slice(-1);
}

// Splits a text into characters as people perceive them (grapheme clusters).
function clustersOf(text: string): Iterable<string> {
  if (/^[\n\t -~]*$/.test(text)) return text;
  graphemes ??= new Intl.Segmenter();
  return Array.from(graphemes.segment(text), ({ segment }) => segment);
}

// The same, with each ⟨U+…⟩ as one token.
export function tokensOf(shown: string): string[] {
  const tokens: string[] = [];
  let from = 0;
  for (const { index, 0: name } of shown.matchAll(NAME)) {
    tokens.push(...clustersOf(shown.slice(from, index)), name);
    from = index + name.length;
  }
  tokens.push(...clustersOf(shown.slice(from)));
  return tokens;
}

// Fits prose on one line of at most `columns`. For a path, keep the end, which says more than the start.
export function oneLine(text: string, columns: number, keep: 'start' | 'end' = 'start'): string {
  const part = clipFor(text, columns, keep);
  return fitLine(safeText(part).replace(/\s+/g, ' ').trim(), columns, { keep, isCut: part !== text });
}

// Fits a command, a path or an option on one line: keeps every space, and shows line ends by name.
export function exactLine(text: string, columns: number, keep: 'start' | 'end' = 'start'): string {
  const part = clipFor(text, columns, keep);
  return fitLine(nameInLine(part), columns, { keep, isCut: part !== text });
}

interface Fit {
  readonly keep?: 'start' | 'end';
  // The line is a part of a longer one.
  readonly isCut?: boolean;
}

// Cuts a safe line: an ellipsis marks the cut, and no ⟨U+…⟩ name is split.
export function fitLine(line: string, columns: number, { keep = 'start', isCut = false }: Fit = {}): string {
  if (!isCut && textWidth(line) <= columns) return line;
  if (columns < 1) return '';
  const tokens = tokensOf(line);
  if (keep === 'end') tokens.reverse();
  let width = 1;
  const fitting: string[] = [];
  for (const token of tokens) {
    width += textWidth(token);
    if (width > columns) break;
    fitting.push(token);
  }
  return keep === 'start' ? `${fitting.join('').trimEnd()}…` : `…${fitting.toReversed().join('').trimStart()}`;
}

// Clips a text before it is measured: a raw line may have 16 MiB, and a column never needs more than a few code units.
// Splits no character.
function clipFor(text: string, columns: number, keep: 'start' | 'end'): string {
  const enough = columns * 16 + 64;
  if (text.length <= enough) return text;
  if (keep === 'start') return text.slice(0, enough).replace(/[\ud800-\udbff]$/, '');
  return text.slice(-enough).replace(/^[\udc00-\udfff]/, '');
}
