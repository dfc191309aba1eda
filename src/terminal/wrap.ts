// Wraps text to a width while it comes in pieces. A word is written when its end is known, so that it never has to be
// taken back; Chinese and other wide characters break between each other. What was written does not depend on how the
// text was cut. Blanks at the end of a line, and more than one blank line in a row, are left out.
import { textWidth } from './text-width.js';
import type { MarkdownInk } from './markdown-ink.js';
import { SafeStream, tokensOf } from './safe-text.js';

const TAB = 4;
// Wide enough for any character that a script writes; what is wider was made to be, and is taken apart.
const WIDEST = 4;
// Not at the start of a line, and not at its end, even beside a wide character.
const CLOSING = /^[\p{Pe}\p{Pf},.:;!?%'"、。，．：；？！‰ー々…ぁぃぅぇぉっゃゅょァィゥェォッャュョ]/u;
// They make the character before them wide; one that came after a pause is counted by itself.
const WIDENING = /^[\ufe0f\u20e3]/;
const HALF_FLAG = /^\p{Regional_Indicator}$/u;
const BLANK = /^[ \t\n]$/;
const OPENING = /^[\p{Ps}\p{Pi}]/u;

export interface Margins {
  // Before the first line, and before each other; escapes in it do not count.
  readonly first?: string;
  readonly rest?: string;
}

export class Wrapper {
  readonly #columns: number;
  readonly #margins: Required<Margins>;
  readonly #safe = new SafeStream();
  // The last character: a mark may follow that belongs to it. A blank ends a word whatever follows.
  #tail = '';
  // A word without its end.
  #word: { readonly cluster: string; readonly width: number }[] = [];
  #wordWidth = 0;
  #last: { readonly cluster: string; readonly wide: boolean } | null = null;
  // A word longer than a line, or begun before a pause, is broken where the line ends.
  #overlong = false;
  #gap = 0;
  #newlines = 0;
  #column = 0;
  #begun = false;
  #out = '';

  readonly #ink: MarkdownInk | null;

  // `ink` colours what is written, without a change of its width.
  constructor(width: number, margins: Margins = {}, ink: MarkdownInk | null = null) {
    this.#ink = ink;
    const { first = '', rest = '' } = margins;
    this.#margins = { first, rest };
    this.#columns = Math.max(WIDEST, width - Math.max(textWidth(first), textWidth(rest)));
  }

  push(text: string): string {
    const clusters = tokensOf(this.#tail + this.#safe.push(text));
    this.#tail = BLANK.test(clusters.at(-1) ?? '') ? '' : (clusters.pop() ?? '');
    for (const cluster of clusters) this.#take(cluster);
    return this.#taken();
  }

  // Nothing came for a while: the word so far is written as it stands. If it goes on, it goes on behind it, and is
  // broken where the line ends.
  pause(): string {
    if (!HALF_FLAG.test(this.#tail)) {
      if (this.#tail !== '') this.#take(this.#tail);
      this.#tail = '';
    }
    if (this.#word.length > 0) {
      this.#writeWord();
      this.#overlong = true;
    }
    return this.#taken();
  }

  end(): string {
    for (const cluster of tokensOf(this.#tail + this.#safe.end())) this.#take(cluster);
    this.#tail = '';
    this.#endWord();
    this.#out += this.#ink?.end() ?? '';
    return this.#taken();
  }

  #taken(): string {
    const out = this.#out;
    this.#out = '';
    return out;
  }

  #take(cluster: string): void {
    if (cluster === '\n') {
      this.#endWord();
      this.#out += this.#ink?.endLine() ?? '';
      this.#newlines += 1;
      this.#gap = 0;
    } else if (cluster === ' ' || cluster === '\t') {
      this.#endWord();
      const column = (this.#newlines > 0 ? 0 : this.#column) + this.#gap;
      this.#gap += cluster === ' ' ? 1 : TAB - (column % TAB);
    } else if (cluster.startsWith(' ')) {
      this.#take(' ');
      this.#take(cluster.slice(1));
    } else {
      const width = Math.max(textWidth(cluster), WIDENING.test(cluster) ? 1 : 0);
      const isName = cluster.startsWith('⟨U+') && width <= this.#columns;
      if (width <= WIDEST || isName) this.#takeLetter(cluster, width);
      else for (const part of cluster) this.#takeLetter(part, textWidth(part));
    }
  }

  #takeLetter(cluster: string, width: number): void {
    const wide = width > 1;
    if (this.#last && (this.#last.wide || wide) && !CLOSING.test(cluster) && !OPENING.test(this.#last.cluster))
      this.#endWord();
    this.#last = { cluster, wide };
    const inked = this.#ink?.wrap(cluster) ?? cluster;
    if (this.#overlong) {
      this.#writeBroken(inked, width);
      return;
    }
    this.#word.push({ cluster: inked, width });
    this.#wordWidth += width;
    if (this.#wordWidth <= this.#columns) return;
    // It fits on no line: it starts on a line of its own.
    if (this.#column > 0 && this.#newlines === 0) this.#newlines = 1;
    this.#gap = 0;
    this.#startLine();
    for (const part of this.#word) this.#writeBroken(part.cluster, part.width);
    this.#word = [];
    this.#wordWidth = 0;
    this.#overlong = true;
  }

  #endWord(): void {
    if (this.#word.length > 0) this.#writeWord();
    this.#last = null;
    this.#overlong = false;
  }

  #writeWord(): void {
    const full = this.#column > 0 && this.#newlines === 0 && this.#column + this.#gap + this.#wordWidth > this.#columns;
    if (full) {
      this.#newlines = 1;
      this.#gap = 0;
    }
    this.#startLine();
    const gap = Math.min(this.#gap, this.#columns - this.#column - this.#wordWidth);
    this.#out += ' '.repeat(gap) + this.#word.map(({ cluster }) => cluster).join('');
    this.#column += gap + this.#wordWidth;
    this.#gap = 0;
    this.#word = [];
    this.#wordWidth = 0;
  }

  #writeBroken(cluster: string, width: number): void {
    if (this.#column + width > this.#columns && this.#column > 0) {
      this.#newlines = 1;
      this.#startLine();
    }
    this.#out += cluster;
    this.#column += width;
  }

  // Line ends are written only when something follows them.
  #startLine(): void {
    if (!this.#begun) {
      this.#begun = true;
      this.#out += this.#margins.first;
    } else if (this.#newlines > 0) {
      this.#out += `${this.#newlines > 1 ? '\n' : ''}\n${this.#margins.rest}`;
      this.#column = 0;
    }
    this.#newlines = 0;
  }
}

export function wrapText(text: string, width: number, margins: Margins = {}): string {
  const wrapper = new Wrapper(width, margins);
  return wrapper.push(text) + wrapper.end();
}
