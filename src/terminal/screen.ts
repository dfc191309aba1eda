// Text with one status line below it. On a terminal the line is taken away before text is written and put back behind it;
// it stands only where a line begins: while a streamed text stands in the middle of a line, the text itself shows that
// something happens. Without a terminal there is no status line at all.

// To the start of the line, and all of it erased.
const ERASE = '\r\u001b[2K';

export class Screen {
  readonly #sink: (text: string) => void;
  readonly #tty: boolean;
  #status: string | null = null;
  #shown = false;
  #lineStart = true;

  constructor(sink: (text: string) => void, options: { readonly tty: boolean }) {
    this.#sink = sink;
    this.#tty = options.tty;
  }

  write(text: string): void {
    if (text === '') return;
    this.#lineStart = text.endsWith('\n');
    // One piece, so that nothing flickers.
    this.#sink(this.#erased() + text + this.#drawn());
  }

  // Null takes it away. The line must fit: it is no longer than the screen is wide, and has no line end.
  status(line: string | null): void {
    if (!this.#tty || line === this.#status) return;
    this.#status = line;
    const change = this.#erased() + this.#drawn();
    if (change !== '') this.#sink(change);
  }

  #erased(): string {
    if (!this.#shown) return '';
    this.#shown = false;
    return ERASE;
  }

  #drawn(): string {
    if (this.#status === null || !this.#lineStart) return '';
    this.#shown = true;
    return this.#status;
  }
}
