// A terminal with only the features that the tests need: computes the screen after these bytes. It knows line ends,
// erasing a line, the cursor up and to the right, colours (ignored), wrapping after the last column, and scrolling; any
// other escape is an error. Characters without width are not drawn.
import stringWidth from 'string-width';

const graphemes = new Intl.Segmenter();

export class TinyTerminal {
  readonly #columns: number;
  readonly #height: number;
  // A cell has what starts in its column; the second half of a wide character is ''.
  readonly #rows: string[][] = [[]];
  #row = 0;
  #column = 0;

  constructor(columns: number, height = Infinity) {
    this.#columns = columns;
    this.#height = height;
  }

  write(text: string): void {
    for (const [token, parameter = '', final] of text.matchAll(/\u001b\[([0-9;]*)([mKAC])|\u001b.?|[^\u001b]+/g)) {
      if (final === 'm') continue;
      if (final === 'K' && parameter === '2') this.#rows[this.#row] = [];
      else if (final === 'A') this.#row = Math.max(this.#top(), this.#row - Number(parameter));
      else if (final === 'C') this.#column = Math.min(this.#columns - 1, this.#column + Number(parameter));
      else if (token.startsWith('\u001b'))
        throw new Error(`an escape this terminal does not know: ${JSON.stringify(token)}`);
      else for (const { segment } of graphemes.segment(token)) this.#put(segment);
    }
  }

  // Lines that have scrolled away cannot be reached any more.
  #top(): number {
    return Math.max(0, this.#rows.length - this.#height);
  }

  // The screen and the lines that have scrolled away as text, without trailing blanks.
  text(): string {
    return this.#rows
      .map((cells) =>
        Array.from(cells, (cell) => cell ?? ' ')
          .join('')
          .trimEnd(),
      )
      .join('\n');
  }

  #put(cluster: string): void {
    if (cluster === '\n' || cluster === '\r\n') {
      this.#lineFeed();
      return;
    }
    if (cluster === '\r') {
      this.#column = 0;
      return;
    }
    const width = stringWidth(cluster);
    if (this.#column + width > this.#columns) this.#lineFeed();
    const cells = this.#rows[this.#row] ?? [];
    if (width === 0) return;
    cells[this.#column] = cluster;
    for (let extra = 1; extra < width; extra += 1) cells[this.#column + extra] = '';
    this.#column += width;
  }

  #lineFeed(): void {
    this.#row += 1;
    this.#column = 0;
    this.#rows[this.#row] ??= [];
  }
}
