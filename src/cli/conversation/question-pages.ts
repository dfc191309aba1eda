// Shows an approval page by page if it does not fit on the screen, and knows whether all of it was shown.
import { renderQuestion, type Question } from '../../terminal/question-text.js';
import type { Style } from '../../terminal/style.js';
import type { Io } from '../io.js';
import { texts } from '../language/language.js';

const FEWEST_ROWS = 5;
// One row for the prompt and one for the last line of the page before.
const OTHER_ROWS = 2;

// How many lines of a question are shown at once.
export function pageRows({ terminal }: Pick<Io, 'terminal'>): number {
  return Math.max(FEWEST_ROWS, terminal.rows() - OTHER_ROWS);
}

export class QuestionPages {
  readonly #question: Question;
  readonly #style: Style;
  readonly #io: Io;
  #width: number;
  #lines: readonly string[];
  #shown: number;

  // The caller has already shown the first page.
  constructor(question: Question, style: Style, io: Io) {
    this.#question = question;
    this.#style = style;
    this.#io = io;
    this.#width = style.width;
    this.#lines = renderQuestion(question, style).split('\n');
    this.#shown = Math.min(pageRows(io), this.#lines.length);
  }

  readonly hasMore = (): boolean => this.#question.kind === 'approval' && this.#shown < this.#lines.length;

  // Returns the next page. Starts again after the window was resized, because lines now wrap elsewhere.
  next(): string {
    if (this.#style.width !== this.#width) {
      this.#width = this.#style.width;
      this.#lines = renderQuestion(this.#question, this.#style).split('\n');
      this.#shown = 0;
    }
    const from = this.#shown;
    this.#shown = Math.min(from + pageRows(this.#io), this.#lines.length);
    return this.#lines.slice(from, this.#shown).join('\n');
  }

  // Returns how many lines are left, or null if all were shown.
  left(): string | null {
    if (!this.hasMore()) return null;
    const left = this.#lines.length - this.#shown;
    return texts().say.linesLeft(left, this.#lines.length);
  }
}
