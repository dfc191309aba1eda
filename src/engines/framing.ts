// Cuts bytes into lines with their exact byte ranges. Splits before decoding, so offsets are exact and cost nothing.
// Chunk boundaries make no difference: any cut of the same bytes gives the same lines.
import { invariant } from '../kernel/invariant.js';

// A longer line is not buffered: it is delivered in pieces. The longest real one, a 3 MB answer, is far below.
export const MAX_LINE_BYTES = 16 * 1024 * 1024;
export const PIECE_BYTES = 1024 * 1024;

const LF = 0x0a;
// A carry buffer larger than this is released after use.
const KEEP_BYTES = 64 * 1024;

export interface LineSink {
  // bytes[start, end) is the content without LF; [from, to) is its range in the stream, LF included.
  line(bytes: Buffer, start: number, end: number, from: number, to: number, terminated: boolean): void;
  // A piece of a line that is too long; part counts from 0.
  piece(bytes: Buffer, start: number, end: number, from: number, to: number, part: number): void;
}

export class LineFramer {
  readonly #sink: LineSink;
  // The buffered part of an unfinished line: #carry[0, #held), starting at #offset in the stream.
  #carry = Buffer.alloc(0);
  #held = 0;
  #offset: number;
  // Set while a line is being delivered in pieces: the number of the next piece.
  #part = -1;

  // `from` is the position of the first byte in the stream.
  constructor(sink: LineSink, from = 0) {
    this.#sink = sink;
    this.#offset = from;
  }

  push(chunk: Buffer): void {
    let start = 0;
    while (start < chunk.length) {
      const lf = chunk.indexOf(LF, start);
      if (lf < 0) break;
      if (this.#held === 0) this.#finishLine(chunk, start, lf, true);
      else {
        this.#hold(chunk, start, lf);
        this.#finishLine(this.#carry, 0, this.#held, true);
        this.#release();
      }
      start = lf + 1;
    }
    if (start < chunk.length) this.#holdRest(chunk, start);
  }

  // A whole line that did not come through the framer. Offsets continue after it.
  pass(from: number, to: number): void {
    invariant(this.#held === 0 && this.#part < 0 && this.#offset === from, 'a line follows the bytes before it');
    this.#offset = to;
  }

  end(): void {
    if (this.#held > 0) {
      this.#finishLine(this.#carry, 0, this.#held, false);
      this.#release();
    }
  }

  #finishLine(bytes: Buffer, start: number, end: number, terminated: boolean): void {
    if (this.#part < 0 && end - start > MAX_LINE_BYTES) this.#part = 0;
    const lf = terminated ? 1 : 0;
    if (this.#part < 0) {
      const to = this.#offset + (end - start) + lf;
      this.#sink.line(bytes, start, end, this.#offset, to, terminated);
      this.#offset = to;
      return;
    }
    const rest = this.#givePieces(bytes, start, end);
    const to = this.#offset + (end - rest) + lf;
    this.#sink.piece(bytes, rest, end, this.#offset, to, this.#part);
    this.#offset = to;
    this.#part = -1;
  }

  // Delivers full pieces while there is more than one; returns where the rest begins.
  #givePieces(bytes: Buffer, start: number, end: number): number {
    while (end - start > PIECE_BYTES) {
      const cut = characterStart(bytes, start + PIECE_BYTES, start);
      this.#sink.piece(bytes, start, cut, this.#offset, this.#offset + (cut - start), this.#part);
      this.#offset += cut - start;
      this.#part += 1;
      start = cut;
    }
    return start;
  }

  #holdRest(chunk: Buffer, start: number): void {
    // Works in slices, so that one huge chunk of a too long line is not copied as a whole.
    for (let at = start; at < chunk.length; at += PIECE_BYTES) {
      this.#hold(chunk, at, Math.min(chunk.length, at + PIECE_BYTES));
      if (this.#part < 0 && this.#held > MAX_LINE_BYTES) this.#part = 0;
      if (this.#part < 0) continue;
      const rest = this.#givePieces(this.#carry, 0, this.#held);
      if (rest === 0) continue;
      const left = Buffer.from(this.#carry.subarray(rest, this.#held));
      this.#release();
      this.#hold(left, 0, left.length);
    }
  }

  #hold(source: Buffer, start: number, end: number): void {
    const need = this.#held + (end - start);
    if (need > this.#carry.length) {
      const grown = Buffer.allocUnsafe(Math.max(need, this.#carry.length * 2, 1024));
      this.#carry.copy(grown, 0, 0, this.#held);
      this.#carry = grown;
    }
    source.copy(this.#carry, this.#held, start, end);
    this.#held = need;
  }

  #release(): void {
    this.#held = 0;
    if (this.#carry.length > KEEP_BYTES) this.#carry = Buffer.alloc(0);
  }
}

// Returns the largest position not above `at` where a UTF-8 character begins, or `at` itself for bytes that are not
// UTF-8.
function characterStart(bytes: Buffer, at: number, floor: number): number {
  for (let back = 0; back < 4 && at - back > floor; back += 1) {
    if (((bytes[at - back] ?? 0) & 0xc0) !== 0x80) return at - back;
  }
  return at;
}
