// The lines of a server for any number of readers. Each line comes parsed, and recent lines stay in memory, so a reader
// that keeps up never reads the log. A reader that starts or falls further behind reads the log from its own offset
// until it has caught up.
//
// Memory is bounded in both kinds of reading. A plain reader holds nobody up: lines it has not read leave the memory
// after RECENT_BYTES. A pacing reader (a running turn) never loses a line from memory; instead the server is not read
// while more than PACE_BYTES wait for that reader.
import { openFile } from '../files/read-file.js';
import { LineReader, type ReceivedLine } from '../jsonrpc/received-line.js';

export interface FeedOptions {
  /** The byte offset in the log to start from; by default the end of the log at the time of the call. */
  readonly from?: number;
  /** Ends the iterator. */
  readonly signal?: AbortSignal;
  // The server waits for this reader. For a reader that never waits for the server while it handles a line.
  readonly paces?: boolean;
}

export interface FeedSource {
  // The log, and its size now.
  readonly path: string;
  readonly published: number;
  // Maps a line that was read from the log to the received line, if one is still held.
  readonly recall?: (line: ReceivedLine) => ReceivedLine;
}

interface Reader {
  // The end of the last line that it has handled.
  at: number;
  readonly paces: boolean;
}

// More than a server prints between two turns.
export const RECENT_BYTES = 256 * 1024;
export const PACE_BYTES = 1024 * 1024;
const READ_BYTES = 64 * 1024;
// Removed lines are cut off the array in groups: one by one would move all others each time.
const CUT_LINES = 1024;

export class LineFeed {
  readonly #path: string;
  readonly #recall: (line: ReceivedLine) => ReceivedLine;
  // The lines in memory are #lines[#first, ...); they end at #published in the log.
  #lines: (ReceivedLine | undefined)[] = [];
  #first = 0;
  // How many lines were cut off the array before #lines[0].
  #cut = 0;
  #published: number;
  // Where the log ends; null while the server runs.
  #end: number | null = null;
  readonly #pacing = new Set<Reader>();
  #waiting: (() => void)[] = [];
  #forRoom: (() => void)[] = [];

  constructor({ path, published, recall = (line) => line }: FeedSource) {
    this.#path = path;
    this.#recall = recall;
    this.#published = published;
  }

  publish(line: ReceivedLine): void {
    this.#lines.push(line);
    this.#published = line.to;
    this.#removeOld();
    wakeAll(this.#waiting);
  }

  // The log ends at this offset, perhaps with bytes of which no line was published.
  end(at: number): void {
    this.#end = at;
    wakeAll(this.#waiting);
  }

  // Resolves when no pacing reader is far behind; undefined if none is now.
  room(): Promise<void> | undefined {
    return this.#isFull() ? new Promise((resolve) => void this.#forRoom.push(resolve)) : undefined;
  }

  // The default offset is the end of the log at the call, not at the first `next`.
  read({ from = this.#published, signal, paces = false }: FeedOptions = {}): AsyncGenerator<ReceivedLine, void> {
    const reader: Reader = { at: from, paces };
    return endAtOnce((stop) => this.#read(reader, stop), signal);
  }

  async *#read(reader: Reader, signal: AbortSignal): AsyncGenerator<ReceivedLine, void> {
    const wake = (): void => wakeAll(this.#waiting);
    signal.addEventListener('abort', wake);
    if (reader.paces) this.#pacing.add(reader);
    try {
      while (!signal.aborted) {
        let index = this.#indexOf(reader.at);
        if (index !== null) {
          // Uses line numbers from here on, because the array may be cut in the meantime.
          for (let number = this.#cut + index; ; number += 1) {
            index = number - this.#cut;
            const line = index < this.#first ? undefined : this.#lines[index];
            if (line === undefined) break;
            yield line;
            this.#handled(reader, line);
            if (signal.aborted) return;
          }
        } else if (reader.at < (this.#end ?? this.#published)) {
          for await (const line of this.#readLog(reader.at)) {
            yield line;
            this.#handled(reader, line);
            if (signal.aborted) return;
          }
        } else if (this.#end === null) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
        else return;
      }
    } finally {
      signal.removeEventListener('abort', wake);
      this.#pacing.delete(reader);
      this.#wakeForRoom();
    }
  }

  // Returns the array index of the line in memory that starts at this offset, or null.
  #indexOf(offset: number): number | null {
    let [low, high] = [this.#first, this.#lines.length - 1];
    while (low <= high) {
      const middle = (low + high) >> 1;
      const { from = 0 } = this.#lines[middle] ?? {};
      if (from === offset) return middle;
      if (from < offset) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }

  #handled(reader: Reader, line: ReceivedLine): void {
    reader.at = line.to;
    if (!reader.paces) return;
    this.#removeOld();
    this.#wakeForRoom();
  }

  // Keeps the lines that a pacing reader has not handled, and of the others the last RECENT_BYTES.
  #removeOld(): void {
    const keepFrom = this.#slowest();
    for (let line = this.#lines[this.#first]; line; line = this.#lines[this.#first]) {
      if (line.to > keepFrom || this.#published - line.from <= RECENT_BYTES) break;
      this.#lines[this.#first] = undefined;
      this.#first += 1;
    }
    if (this.#first < CUT_LINES) return;
    this.#lines = this.#lines.slice(this.#first);
    this.#cut += this.#first;
    this.#first = 0;
  }

  #slowest(): number {
    let slowest = this.#published;
    for (const { at } of this.#pacing) slowest = Math.min(slowest, at);
    return slowest;
  }

  #isFull(): boolean {
    return this.#published - this.#slowest() > PACE_BYTES;
  }

  #wakeForRoom(): void {
    if (this.#forRoom.length > 0 && !this.#isFull()) wakeAll(this.#forRoom);
  }

  // Yields the lines from this offset to the next line in memory, or to the end of the log.
  async *#readLog(from: number): AsyncGenerator<ReceivedLine, void> {
    let lines: ReceivedLine[] = [];
    const reader = new LineReader((line) => void lines.push(this.#recall(line)), from);
    for (let at = from; ;) {
      const to = this.#nextInMemory(from);
      if (at >= to) {
        reader.end();
        yield* lines;
        return;
      }
      const chunk = await this.#readChunk(at, Math.min(READ_BYTES, to - at));
      at += chunk.length;
      reader.push(chunk);
      yield* lines;
      if (lines.length > 0) from = lines.at(-1)?.to ?? from;
      lines = [];
    }
  }

  // Returns the start of the first line in memory at or after this offset.
  #nextInMemory(offset: number): number {
    let [low, high] = [this.#first, this.#lines.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#lines[middle]?.from ?? 0) < offset) low = middle + 1;
      else high = middle;
    }
    return this.#lines[low]?.from ?? this.#end ?? this.#published;
  }

  // Opens the file each time, so that an abandoned reader holds no descriptor.
  async #readChunk(at: number, wanted: number): Promise<Buffer> {
    const file = await openFile(this.#path);
    if (!file) throw new Error(`${this.#path} is gone`);
    try {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(wanted), 0, wanted, at);
      if (bytesRead === 0) throw new Error(`${this.#path} is shorter than the data written to it`);
      return buffer.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  }
}

// Gives a generator a `return` that ends a pending `next`. The built-in `return` would wait for that `next` to resolve.
export function endAtOnce<T>(
  begin: (stop: AbortSignal) => AsyncGenerator<T, void>,
  signal?: AbortSignal,
): AsyncGenerator<T, void> {
  const stop = new AbortController();
  const values = begin(signal ? AbortSignal.any([signal, stop.signal]) : stop.signal);
  const end = values.return.bind(values);
  values.return = (value) => {
    stop.abort();
    return end(value);
  };
  return values;
}

function wakeAll(waiting: (() => void)[]): void {
  for (const wake of waiting.splice(0)) wake();
}
