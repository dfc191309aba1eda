// Writes text with one status line below it. On a terminal, the status line is erased before text is written and drawn
// again after it. If the text ends in the middle of a line, the status is on the next line, and the cursor returns to
// the end of the text before more is written. Without a terminal there is no status line.
import { textWidth } from './text-width.js';

const ERASE = '\r\u001b[2K';
const UP = '\u001b[1A';
const right = (columns: number): string => `\u001b[${columns}C`;

export class Screen {
  readonly #sink: (text: string) => void;
  readonly #tty: boolean;
  #status: string | null = null;
  #shown = false;
  // The text of the unfinished line.
  #line = '';

  constructor(sink: (text: string) => void, options: { readonly tty: boolean }) {
    this.#sink = sink;
    this.#tty = options.tty;
  }

  // The text must have no line wider than the screen and no tabs, so that the terminal never wraps it.
  write(text: string): void {
    if (text === '') return;
    // One write, so that nothing flickers.
    this.#sink(this.#erased() + text + this.#continued(text));
  }

  // Null removes the status line. The line must be narrower than the screen and has no line end.
  status(line: string | null): void {
    if (!this.#tty || line === this.#status) return;
    const erased = this.#erased();
    this.#status = line;
    const change = erased + this.#drawn();
    if (change !== '') this.#sink(change);
  }

  // Starts a new line. Needed on a terminal before other code writes to it.
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
