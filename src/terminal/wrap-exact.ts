// Wraps text that a person approves or relies on: shows every character, spaces and blank lines included, and invisible
// characters by name. Wrapped lines have their own margin, so that they differ from lines of the text. Lines break
// after a space if there is one, and never inside a name that fits on a line.
import { nameInvisible, nameOf } from '../kernel/visible-text.js';
import { textWidth } from './text-width.js';
import { tokensOf } from './safe-text.js';

export interface ExactMargins {
  // Before the first line, before each other line of the text, and before wrapped lines. All of the same width.
  readonly first?: string;
  readonly rest?: string;
  readonly wrapped?: string;
}

const TAB = 4;
const FEWEST_COLUMNS = 4;

// Returns the text as it is shown, before wrapping. Names a space at the end of a line, which would be invisible.
export function showExact(text: string): string {
  return nameInvisible(text).replaceAll(/[ \t]$/gm, nameOf);
}

export function wrapExact(text: string, width: number, margins: ExactMargins = {}): string {
  return wrapShown(showExact(text), width, margins);
}

// For text whose invisible characters are already named.
export function wrapShown(shown: string, width: number, margins: ExactMargins = {}): string {
  const { first = '', rest = first, wrapped = rest } = margins;
  const columns = Math.max(FEWEST_COLUMNS, width - Math.max(...[first, rest, wrapped].map(textWidth)));
  const lines = shown
    .split('\n')
    .flatMap((line, index) =>
      breakLine(line, columns).map((part, place) => `${place > 0 ? wrapped : index === 0 ? first : rest}${part}`),
    );
  return lines.join('\n');
}

function breakLine(line: string, columns: number): string[] {
  if (line.length <= columns && /^[ -~]*$/.test(line)) return [line];
  const lines: string[] = [];
  let shown = '';
  let width = 0;
  // The text after the last space, with its width.
  let word = '';
  let wordWidth = 0;
  for (const token of tokensOf(line)) {
    const fitting = textWidth(token) <= columns ? [token] : [...token];
    for (const each of fitting) {
      const cell = each === '\t' ? ' '.repeat(TAB - ((width + wordWidth) % TAB)) : each;
      const cellWidth = textWidth(cell);
      while (width + wordWidth + cellWidth > columns && shown + word !== '') {
        // A word that fills the line is broken; any other word starts the next line.
        if (shown === '') {
          lines.push(word);
          word = '';
          wordWidth = 0;
        } else {
          lines.push(shown);
          shown = '';
          width = 0;
        }
      }
      word += cell;
      wordWidth += cellWidth;
      if (each === ' ' || each === '\t') {
        shown += word;
        width += wordWidth;
        word = '';
        wordWidth = 0;
      }
    }
  }
  return [...lines, shown + word];
}
