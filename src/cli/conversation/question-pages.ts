// What is to be approved, page by page where it does not fit on the screen. Knows whether all of it was shown.
import { renderQuestion, type Question } from '../../terminal/question-text.js';
import type { Style } from '../../terminal/style.js';
import type { Io } from '../io.js';

const FEWEST_ROWS = 5;
// The prompt, and a line of what was shown before.
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

  // The first page was shown already.
  constructor(question: Question, style: Style, io: Io) {
    this.#question = question;
    this.#style = style;
    this.#io = io;
    this.#width = style.width;
    this.#lines = renderQuestion(question, style).split('\n');
    this.#shown = Math.min(pageRows(io), this.#lines.length);
  }

  readonly hasMore = (): boolean => this.#question.kind === 'approval' && this.#shown < this.#lines.length;

  // The next lines, with how many are left. After the window was resized it begins again: lines wrap elsewhere now.
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

  // Null: there is nothing left.
  left(): string | null {
    if (!this.hasMore()) return null;
    const left = this.#lines.length - this.#shown;
    return `${left} more ${left === 1 ? 'line' : 'lines'} of ${this.#lines.length}`;
  }
}
