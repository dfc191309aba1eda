// Wraps text to a width while it arrives in pieces. Writes a word when its end is known, so that it never has to erase
// it; lines may break between Chinese and other wide characters. The output does not depend on how the text was split.
// Drops spaces at the end of a line, and all but one of several blank lines.
import { textWidth } from './text-width.js';
import type { MarkdownInk } from './markdown-ink.js';
import { SafeStream, tokensOf } from './safe-text.js';

const TAB = 4;
// Wide enough for the characters of any script; a wider cluster is artificial and is split.
const WIDEST = 4;
// Characters that must not start a line (CLOSING) or end one (OPENING), even next to a wide character.
const CLOSING = /^[\p{Pe}\p{Pf},.:;!?%'"、。，．：；？！‰ー々…ぁぃぅぇぉっゃゅょァィゥェォッャュョ]/u;
// Marks that widen the character before them; one that arrives after a pause is counted alone.
const WIDENING = /^[\ufe0f\u20e3]/;
const HALF_FLAG = /^\p{Regional_Indicator}$/u;
const BLANK = /^[ \t\n]$/;
const OPENING = /^[\p{Ps}\p{Pi}]/u;

export interface Margins {
  // Before the first line, and before each other line. Escape sequences have no width.
  readonly first?: string;
  readonly rest?: string;
}

export class Wrapper {
  readonly #columns: number;
  readonly #margins: Required<Margins>;
  readonly #safe = new SafeStream();
  // The last character, held back because a combining mark may follow. A space ends a word in any case.
  #tail = '';
  // The incomplete word.
  #word: { readonly cluster: string; readonly width: number }[] = [];
  #wordWidth = 0;
  #last: { readonly cluster: string; readonly wide: boolean } | null = null;
  // A word longer than a line, or started before a pause, is broken at the end of the line.
  #overlong = false;
  #gap = 0;
  #newlines = 0;
  #column = 0;
  #hasStarted = false;
  #out = '';

  readonly #ink: MarkdownInk | null;

  // `ink` adds colour without changing the width.
  constructor(width: number, margins: Margins = {}, ink: MarkdownInk | null = null) {
    this.#ink = ink;
    const { first = '', rest = '' } = margins;
    this.#margins = { first, rest };
    this.#columns = Math.max(WIDEST, width - Math.max(textWidth(first), textWidth(rest)));
  }

  push(text: string): string {
    const clusters = tokensOf(this.#tail + this.#safe.push(text));
    this.#tail = BLANK.test(clusters.at(-1) ?? '') ? '' : (clusters.pop() ?? '');
    for (const cluster of clusters) this.#addCluster(cluster);
    return this.#drain();
  }

  // Call after a pause: writes the incomplete word as it is. The rest of the word follows it and is broken at the end
  // of the line.
  pause(): string {
    if (!HALF_FLAG.test(this.#tail)) {
      if (this.#tail !== '') this.#addCluster(this.#tail);
      this.#tail = '';
    }
    if (this.#word.length > 0) {
      this.#writeWord();
      this.#overlong = true;
    }
    return this.#drain();
  }

  end(): string {
    for (const cluster of tokensOf(this.#tail + this.#safe.end())) this.#addCluster(cluster);
    this.#tail = '';
    this.#endWord();
    this.#out += this.#ink?.end() ?? '';
    return this.#drain();
  }

  #drain(): string {
    const out = this.#out;
    this.#out = '';
    return out;
  }

  #addCluster(cluster: string): void {
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
      this.#addCluster(' ');
      this.#addCluster(cluster.slice(1));
    } else {
      const width = Math.max(textWidth(cluster), WIDENING.test(cluster) ? 1 : 0);
      const isName = cluster.startsWith('⟨U+') && width <= this.#columns;
      if (width <= WIDEST || isName) this.#addLetter(cluster, width);
      else for (const part of cluster) this.#addLetter(part, textWidth(part));
    }
  }

  #addLetter(cluster: string, width: number): void {
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
    // The word fits on no line, so it starts on a new one.
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

  // Writes line ends only when text follows them.
  #startLine(): void {
    if (!this.#hasStarted) {
      this.#hasStarted = true;
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
