// Light rendering of Markdown while it arrives: headings and **bold** are bold, `code` and fenced blocks are coloured.
// Adds colour only and drops no character: a message reads the same with and without it.

const BOLD = '\u001b[1m';
const BOLD_OFF = '\u001b[22m';
const CODE = '\u001b[36m';
const CODE_OFF = '\u001b[39m';
const FENCE = '```';

export class MarkdownInk {
  #isBold = false;
  #isHeading = false;
  #isCode = false;
  #isFenced = false;
  // The marks at the start of the line while they may be a fence; null otherwise.
  #lineStart: string | null = '';
  #stars = 0;

  // Returns the character with its colour codes.
  wrap(cluster: string): string {
    const start = this.#lineStart;
    this.#lineStart = start !== null && cluster === '`' ? start + cluster : null;
    if (this.#lineStart === FENCE) return this.#toggleFence(cluster);
    if (this.#isFenced) return cluster;
    if (start === '' && cluster === '#') return this.#startHeading(cluster);
    if (cluster === '`') return this.#toggleCode(cluster);
    this.#stars = cluster === '*' && !this.#isCode ? this.#stars + 1 : 0;
    if (this.#stars < 2) return cluster;
    this.#stars = 0;
    this.#isBold = !this.#isBold;
    return cluster + (this.#isBold ? BOLD : this.#isHeading ? '' : BOLD_OFF);
  }

  // The end of a line ends everything but a fenced block.
  endLine(): string {
    const bold = this.#isBold || this.#isHeading ? BOLD_OFF : '';
    const code = this.#isCode && !this.#isFenced ? CODE_OFF : '';
    this.#isBold = false;
    this.#isHeading = false;
    if (!this.#isFenced) this.#isCode = false;
    this.#lineStart = '';
    this.#stars = 0;
    return bold + code;
  }

  // Ends all colours at the end of the text.
  end(): string {
    const rest = this.endLine();
    const fence = this.#isFenced ? CODE_OFF : '';
    this.#isFenced = false;
    return rest + fence;
  }

  #toggleFence(cluster: string): string {
    // The first two marks looked like empty inline code.
    this.#isCode = false;
    this.#isFenced = !this.#isFenced;
    return this.#isFenced ? CODE + cluster : cluster + CODE_OFF;
  }

  #startHeading(cluster: string): string {
    this.#isHeading = true;
    return BOLD + cluster;
  }

  #toggleCode(cluster: string): string {
    this.#isCode = !this.#isCode;
    return this.#isCode ? CODE + cluster : cluster + CODE_OFF;
  }
}
