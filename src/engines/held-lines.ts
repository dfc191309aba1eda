// Buffers lines, with their ranges, whose meaning depends on the lines after them.
import type { ByteRange } from '../rasp/draft.js';
import type { Emitter } from './emitter.js';

// No document or block is larger than this; it is the length limit of a line, for the same reason.
const MAX_HELD_CHARS = 16 * 1024 * 1024;

interface HeldLine {
  readonly text: string;
  readonly terminated: boolean;
  readonly range: ByteRange | null;
}

export class HeldLines {
  readonly #out: Emitter;
  #lines: HeldLine[] = [];
  #chars = 0;

  constructor(out: Emitter) {
    this.#out = out;
  }

  // Buffers the current line; returns false if the buffer is full.
  add(text: string, terminated: boolean): boolean {
    this.#lines.push({ text, terminated, range: this.#out.range });
    this.#chars += text.length + 1;
    return this.#chars <= MAX_HELD_CHARS;
  }

  get texts(): string[] {
    return this.#lines.map((line) => line.text);
  }

  get isEmpty(): boolean {
    return this.#lines.length === 0;
  }

  get isBlank(): boolean {
    return this.#lines.every((line) => line.text.trim() === '');
  }

  // Returns the first lines (by default all of them), each with its own range.
  release(use: (text: string, terminated: boolean) => void, count: number = this.#lines.length): void {
    const before = this.#out.range;
    for (const { text, terminated, range } of this.#take(count)) {
      this.#out.at(range);
      use(text, terminated);
    }
    this.#out.at(before);
  }

  // Returns the first lines as one unit: their text, and one range over all of them.
  takeAsOne(count: number = this.#lines.length): { text: string; range: ByteRange | null } {
    const lines = this.#take(count);
    const first = lines[0]?.range;
    const last = lines.at(-1)?.range;
    return { text: lines.map((line) => line.text).join('\n'), range: first && last ? { ...first, to: last.to } : null };
  }

  #take(count: number): HeldLine[] {
    const taken = this.#lines.slice(0, count);
    this.#lines = this.#lines.slice(count);
    this.#chars = this.#lines.reduce((sum, line) => sum + line.text.length + 1, 0);
    return taken;
  }
}
