// Whether events account for every byte of a log, in memory that does not grow with the log. Invariant: the byte ranges
// of a stream follow each other without a hole, and two of them are equal or disjoint. Ranges mostly come in order; a
// parser may return to an earlier one (a whole message after its pieces) or hold some back for a while.
import type { RaspEvent, StreamName } from './event.js';

export interface Cover {
  // The end of the covered bytes.
  readonly covered: number;
  readonly holes: number;
  // Ranges that overlap covered bytes without being equal to a range there.
  readonly overlaps: number;
}

// Remembers the first ranges exactly and the others in a Bloom filter: a known range always matches, an unknown one
// matches by mistake with a probability of 1 in 100,000 after a million ranges. Only ranges that return to covered
// bytes are looked up, so a mistake can only hide an overlap.
const EXACT_RANGES = 10_000;
const FILTER_BITS = 2 ** 26;
const HASHES = 4;

export class SeenRanges {
  readonly #first = new Set<string>();
  #bits: Uint32Array | null = null;

  add(log: number, from: number, to: number): void {
    if (this.#first.size < EXACT_RANGES) {
      this.#first.add(`${log} ${from} ${to}`);
      return;
    }
    const bits = (this.#bits ??= new Uint32Array(FILTER_BITS / 32));
    for (const bit of bitsOf(log, from, to)) bits[bit >>> 5] = (bits[bit >>> 5] ?? 0) | (1 << (bit & 31));
  }

  has(log: number, from: number, to: number): boolean {
    if (this.#first.has(`${log} ${from} ${to}`)) return true;
    const bits = this.#bits;
    return bits !== null && bitsOf(log, from, to).every((bit) => ((bits[bit >>> 5] ?? 0) & (1 << (bit & 31))) !== 0);
  }
}

function bitsOf(log: number, from: number, to: number): number[] {
  const first = mix(mix(mix(log, from), from / 2 ** 32), to);
  const step = mix(mix(first, to - from), 0x9e3779b9) | 1;
  return Array.from({ length: HASHES }, (_, index) => ((first + index * step) >>> 0) % FILTER_BITS);
}

// The final mix of Murmur3.
function mix(hash: number, value: number): number {
  let mixed = (hash ^ value) >>> 0;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

// How many ranges may wait for the bytes before them.
const MOST_AHEAD = 10_000;

export class LogCover {
  readonly #seen: SeenRanges;
  readonly #log: number;
  // Ranges after bytes that are not covered yet: start → end.
  readonly #ahead = new Map<number, number>();
  #end: number;
  #holes = 0;
  #overlaps = 0;

  // `log` identifies the attempt and stream among those that share `seen`.
  constructor(seen: SeenRanges, { log, begin }: { readonly log: number; readonly begin: number }) {
    this.#seen = seen;
    this.#log = log;
    this.#end = begin;
  }

  add(from: number, to: number): void {
    if (from === this.#end) this.#extend(from, to);
    else if (from < this.#end) this.#return(from, to);
    else this.#wait(from, to);
  }

  #extend(from: number, to: number): void {
    this.#seen.add(this.#log, from, to);
    this.#end = to;
    for (let next = this.#ahead.get(this.#end); next !== undefined; next = this.#ahead.get(this.#end)) {
      this.#ahead.delete(this.#end);
      this.#seen.add(this.#log, this.#end, next);
      this.#end = next;
    }
  }

  #return(from: number, to: number): void {
    if (this.#seen.has(this.#log, from, to)) return;
    this.#overlaps += 1;
    this.#seen.add(this.#log, from, to);
    this.#end = Math.max(this.#end, to);
  }

  #wait(from: number, to: number): void {
    const known = this.#ahead.get(from) ?? to;
    if (known !== to) this.#overlaps += 1;
    this.#ahead.set(from, Math.max(known, to));
    if (this.#ahead.size > MOST_AHEAD) this.#skipHoles();
  }

  // Counts bytes that are still missing as holes.
  #skipHoles(): void {
    for (const from of [...this.#ahead.keys()].toSorted((a, b) => a - b)) {
      const to = this.#ahead.get(from);
      if (to !== undefined) this.#placeWaiting(from, to);
    }
  }

  #placeWaiting(from: number, to: number): void {
    this.#ahead.delete(from);
    if (from < this.#end) return this.#return(from, to);
    if (from > this.#end) this.#holes += 1;
    this.#extend(from, to);
  }

  // Returns the cover of all ranges since the last call. The next ranges continue at `next`.
  finish(next = 0): Cover {
    this.#skipHoles();
    const cover = { covered: this.#end, holes: this.#holes, overlaps: this.#overlaps };
    this.#end = next;
    this.#holes = 0;
    this.#overlaps = 0;
    return cover;
  }
}

// The cover of one stream of one attempt.
export function measureCover(events: Iterable<RaspEvent>, stream: StreamName, attempt = 1, begin = 0): Cover {
  const cover = new LogCover(new SeenRanges(), { log: 0, begin });
  for (const { raw_ref: ref } of events)
    if (ref?.stream === stream && ref.attempt_number === attempt) cover.add(ref.byte_from, ref.byte_to);
  return cover.finish();
}
