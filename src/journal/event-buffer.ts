// Event lines as UTF-8 bytes, ready to be stored, hashed and sent. Filled piece by piece and drained at each flush. Hot
// path: every parsed event is written through it, so it allocates nothing per event.
import type { TextSink } from '../rasp/stamp.js';

// The methods that Buffer.write calls internally, without its checks.
type DirectBuffer = Buffer & {
  latin1Write(text: string, at: number): number;
  utf8Write(text: string, at: number): number;
};

// Most journals get a few events only.
const INITIAL_BYTES = 64 * 1024;
// A buffer that grew beyond this size is released after the flush.
const KEEP_BYTES = 4 * 1024 * 1024;
const SHORT_BYTES = 32;
const MAX_INT = 0x7fffffff;
const ZERO = 0x30;

export class EventBuffer implements TextSink {
  #bytes = allocate(INITIAL_BYTES);
  #length = 0;

  // The reserved bytes, used or not.
  get capacity(): number {
    return this.#bytes.length;
  }

  // The bytes written since the last drain.
  get length(): number {
    return this.#length;
  }

  bytes(constant: Uint8Array): void {
    const { length } = constant;
    this.#reserve(length);
    const bytes = this.#bytes;
    const start = this.#length;
    // For a few bytes, a native call costs more than copying them.
    if (length > SHORT_BYTES) bytes.set(constant, start);
    else for (let at = 0; at < length; at += 1) bytes[start + at] = constant[at] as number;
    this.#length = start + length;
  }

  // Writes a non-negative integer.
  number(value: number): void {
    if (value > MAX_INT) return this.ascii(String(value));
    let digits = 1;
    for (let limit = 10; value >= limit; limit *= 10) digits += 1;
    this.#reserve(digits);
    const bytes = this.#bytes;
    const end = this.#length + digits;
    for (let at = end - 1; at >= this.#length; at -= 1) {
      const rest = (value / 10) | 0;
      bytes[at] = ZERO + value - rest * 10;
      value = rest;
    }
    this.#length = end;
  }

  ascii(text: string): void {
    const { length } = text;
    this.#reserve(length);
    const bytes = this.#bytes;
    const start = this.#length;
    if (length > SHORT_BYTES) bytes.latin1Write(text, start);
    else for (let at = 0; at < length; at += 1) bytes[start + at] = text.charCodeAt(at);
    this.#length = start + length;
  }

  text(text: string): void {
    // A UTF-16 unit needs at most three bytes.
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.utf8Write(text, this.#length);
  }

  // Returns the bytes written since the last drain. Valid until the next write, so copy them to keep them.
  drain(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    if (this.#bytes.length > KEEP_BYTES) this.#bytes = allocate(INITIAL_BYTES);
    return taken;
  }

  #reserve(bytes: number): void {
    const need = this.#length + bytes;
    if (need <= this.#bytes.length) return;
    const grown = allocate(Math.max(need, this.#bytes.length * 2));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

function allocate(bytes: number): DirectBuffer {
  return Buffer.allocUnsafeSlow(bytes) as DirectBuffer;
}
