// Event lines as UTF-8 bytes, ready to be stored, hashed and sent; filled piece by piece, taken at each flush.
// Hot: it is what an event costs after it was understood. Nothing is allocated per event.
import type { TextSink } from '../rasp/stamp.js';

// What Buffer.write calls in the end, without its checks.
type DirectBuffer = Buffer & { latin1Write(text: string, at: number): number; utf8Write(text: string, at: number): number };

const INITIAL_BYTES = 1024 * 1024;
// A buffer that had to hold more than this is given back.
const KEEP_BYTES = 4 * 1024 * 1024;
const MAX_CONSTANTS = 256;
const MAX_DIGITS = 16;
const ZERO = 0x30;

export class EventBuffer implements TextSink {
  #bytes = allocate(INITIAL_BYTES);
  #length = 0;
  readonly #constants = new Map<string, Uint8Array>();
  readonly #digits = new Uint8Array(MAX_DIGITS);

  constant(text: string): void {
    let bytes = this.#constants.get(text);
    if (bytes === undefined) {
      // Should they turn out not to be few, they are text like any other.
      if (this.#constants.size >= MAX_CONSTANTS) return this.text(text);
      this.#constants.set(text, (bytes = Buffer.from(text, 'utf8')));
    }
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  // A whole number, not negative.
  number(value: number): void {
    let first = MAX_DIGITS;
    do {
      const rest = Math.floor(value / 10);
      this.#digits[(first -= 1)] = ZERO + (value - rest * 10);
      value = rest;
    } while (value > 0);
    this.#reserve(MAX_DIGITS);
    for (let at = first; at < MAX_DIGITS; at += 1) this.#bytes[this.#length++] = this.#digits[at] as number;
  }

  ascii(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#bytes.latin1Write(text, this.#length);
  }

  text(text: string): void {
    // A UTF-16 unit takes at most three bytes.
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.utf8Write(text, this.#length);
  }

  // What was written since the last time. Valid until the next write: who keeps it makes a copy.
  take(): Buffer {
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
