// The events of a turn that the journal has already, to find the output that has no events yet. A turn may have
// millions of events, so one with a byte range takes some 20 bytes here and no object of its own.
import type { ByteRange } from '../rasp/draft.js';

interface Report {
  readonly type: string;
  readonly range: ByteRange | null;
  readonly data: unknown;
}

const FIRST_CAPACITY = 1024;

export class StoredReports {
  // By stream and type: such events of one turn are nearly always in the order of their ranges.
  readonly #ranges = new Map<string, Ranges>();
  // Events without a range are few. Their data identifies them.
  readonly #others = new Map<string, number>();

  add({ type, range, data }: Report): void {
    if (range) {
      const key = `${range.stream} ${type}`;
      const ranges = this.#ranges.get(key) ?? new Ranges();
      this.#ranges.set(key, ranges);
      ranges.add(range);
    } else {
      const key = `${type} ${JSON.stringify(data)}`;
      this.#others.set(key, (this.#others.get(key) ?? 0) + 1);
    }
  }

  // Whether the journal has the event. Each stored event counts once.
  consume({ type, range, data }: Report): boolean {
    if (range) return this.#ranges.get(`${range.stream} ${type}`)?.consume(range) ?? false;
    const key = `${type} ${JSON.stringify(data)}`;
    const count = this.#others.get(key) ?? 0;
    if (count === 0) return false;
    this.#others.set(key, count - 1);
    return true;
  }
}

// A multiset of byte ranges: pairs of numbers, sorted by their beginning before the first search.
class Ranges {
  #pairs = new Float64Array(2 * FIRST_CAPACITY);
  #count = 0;
  #isSorted = true;
  #isUsed = new Uint8Array(0);
  // Where the next range is expected: output is read again in the order in which it was stored.
  #next = 0;

  add({ from, to }: ByteRange): void {
    if (2 * this.#count === this.#pairs.length) {
      const larger = new Float64Array(2 * this.#pairs.length);
      larger.set(this.#pairs);
      this.#pairs = larger;
    }
    if (this.#count > 0 && from < this.#from(this.#count - 1)) this.#isSorted = false;
    this.#pairs[2 * this.#count] = from;
    this.#pairs[2 * this.#count + 1] = to;
    this.#count += 1;
  }

  consume(range: ByteRange): boolean {
    this.#prepare();
    if (this.#use(this.#next, range)) return true;
    for (let index = this.#firstFrom(range.from); this.#from(index) === range.from; index += 1)
      if (this.#use(index, range)) return true;
    return false;
  }

  #use(index: number, { from, to }: ByteRange): boolean {
    if (this.#from(index) !== from || this.#pairs[2 * index + 1] !== to || this.#isUsed[index] === 1) return false;
    this.#isUsed[index] = 1;
    this.#next = index + 1;
    return true;
  }

  // NaN after the last range.
  #from(index: number): number {
    return index < this.#count ? (this.#pairs[2 * index] as number) : NaN;
  }

  #firstFrom(from: number): number {
    let [low, high] = [0, this.#count];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#from(middle) < from) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #prepare(): void {
    if (this.#isUsed.length > 0) return;
    this.#isUsed = new Uint8Array(this.#count + 1);
    if (this.#isSorted) return;
    const order = new Uint32Array(this.#count).map((_, index) => index);
    order.sort((a, b) => this.#from(a) - this.#from(b) || a - b);
    const sorted = new Float64Array(2 * this.#count);
    for (const [place, index] of order.entries()) sorted.set(this.#pairs.subarray(2 * index, 2 * index + 2), 2 * place);
    this.#pairs = sorted;
    this.#isSorted = true;
  }
}
