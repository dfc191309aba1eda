// Text with one status line below it. On a terminal the line is taken away before text is written and put back behind
// it. Where a streamed text stands in the middle of a line, the status stands on the next one, and the cursor goes back
// to the end of the text before more is written. Without a terminal there is no status line at all.
import { textWidth } from './text-width.js';

const ERASE = '\r\u001b[2K';
const UP = '\u001b[1A';
const right = (columns: number): string => `\u001b[${columns}C`;

export class Screen {
  readonly #sink: (text: string) => void;
  readonly #tty: boolean;
  #status: string | null = null;
  #shown = false;
  // The text of the line that is not ended.
  #line = '';

  constructor(sink: (text: string) => void, options: { readonly tty: boolean }) {
    this.#sink = sink;
    this.#tty = options.tty;
  }

  // The text has no line wider than the screen, and no tabs: the terminal must not wrap by itself.
  write(text: string): void {
    if (text === '') return;
    // One piece, so that nothing flickers.
    this.#sink(this.#erased() + text + this.#continued(text));
  }

  // Null takes it away. The line must be narrower than the screen, and has no line end.
  status(line: string | null): void {
    if (!this.#tty || line === this.#status) return;
    const erased = this.#erased();
    this.#status = line;
    const change = erased + this.#drawn();
    if (change !== '') this.#sink(change);
  }

  // What follows begins on a line of its own. Only a terminal needs that: something else is about to write there too.
  endLine(): void {
    if (this.#line !== '') this.write('\n');
  }

  #continued(text: string): string {
    if (!this.#tty) return '';
    const end = text.lastIndexOf('\n');
    this.#line = end === -1 ? this.#line + text : text.slice(end + 1);
    return this.#drawn();
  }

  #drawn(): string {
    if (this.#status === null) return '';
    this.#shown = true;
    return (this.#line === '' ? '' : '\n') + this.#status;
  }

  #erased(): string {
    if (!this.#shown) return '';
    this.#shown = false;
    const column = textWidth(this.#line);
    if (this.#line === '') return ERASE;
    return ERASE + UP + (column > 0 ? right(column) : '');
  }
}
