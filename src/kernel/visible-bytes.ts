// Shows bytes as text: valid UTF-8 as nameInvisible shows it, every other byte by its value, ⟨FF⟩. The bytes may arrive
// in chunks; the result does not depend on where they are cut. No byte is dropped.
import { nameInvisible } from './visible-text.js';

// The longest character in UTF-8, in bytes.
const LONGEST = 4;

export class ByteNamer {
  // The first bytes of a character that is not complete yet.
  #rest: readonly number[] = [];

  push(bytes: Uint8Array): string {
    const all = this.#rest.length === 0 ? bytes : Uint8Array.from([...this.#rest, ...bytes]);
    const end = all.length - openEnd(all);
    this.#rest = [...all.subarray(end)];
    return decode(all.subarray(0, end));
  }

  end(): string {
    const rest = Uint8Array.from(this.#rest);
    this.#rest = [];
    return decode(rest);
  }
}

export function nameBytes(bytes: Uint8Array): string {
  return decode(bytes);
}

function decode(bytes: Uint8Array): string {
  const parts: string[] = [];
  let text = '';
  for (let at = 0; at < bytes.length;) {
    const size = sizeAt(bytes, at);
    if (size === 0) {
      parts.push(nameInvisible(text), `⟨${(bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, '0')}⟩`);
      text = '';
    } else {
      text += String.fromCodePoint(codePointAt(bytes, at, size));
    }
    at += Math.max(1, size);
  }
  return parts.join('') + nameInvisible(text);
}

function codePointAt(bytes: Uint8Array, at: number, size: number): number {
  const first = bytes[at] ?? 0;
  let code = size === 1 ? first : first & (0xff >> (size + 1));
  for (let next = 1; next < size; next += 1) code = (code << 6) | ((bytes[at + next] ?? 0) & 0x3f);
  return code;
}

// Returns the number of bytes of the character that starts here; 0 if none does.
function sizeAt(bytes: Uint8Array, at: number): number {
  const first = bytes[at] ?? 0;
  const size = sizeBy(first);
  if (size <= 1) return size;
  for (let next = 1; next < size; next += 1) if (((bytes[at + next] ?? 0) & 0xc0) !== 0x80) return 0;
  const second = bytes[at + 1] ?? 0;
  const isTooLong = (first === 0xe0 && second < 0xa0) || (first === 0xf0 && second < 0x90);
  const isNone = (first === 0xed && second > 0x9f) || (first === 0xf4 && second > 0x8f);
  return isTooLong || isNone ? 0 : size;
}

function sizeBy(first: number): number {
  if (first < 0x80) return 1;
  if (first < 0xc2) return 0;
  if (first < 0xe0) return 2;
  if (first < 0xf0) return 3;
  return first < 0xf5 ? 4 : 0;
}

// Returns how many bytes at the end may be an incomplete character.
function openEnd(bytes: Uint8Array): number {
  for (let back = 1; back < LONGEST && back <= bytes.length; back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    if (byte >= 0xc0) return sizeBy(byte) > back ? back : 0;
  }
  return 0;
}
