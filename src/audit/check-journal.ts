// Reads the stored segments of a journal in order and checks them on the way: the digest over their bytes, the numbers
// and times that readers find them by, and the file beside the journal, which must hold the same bytes.
import { createHash } from 'node:crypto';
import { splitLines } from '../store/cut-segments.js';
import { FIRST_DIGEST, nextDigest } from '../store/digest.js';
import { FIRST_SEGMENT, type Protocol, type SegmentRange, type Store } from '../store/store.js';
import type { Message } from '../kernel/message.js';
import { finding } from './findings.js';
import { compareFile } from './measure-log.js';
import { fileSize } from '../files/read-file.js';
import type { WaitForFiles } from '../journal/wait-for-files.js';

// At most this much of a journal is in memory at once, unless a single flush is larger.
const PAGE_BYTES = 1024 * 1024;

export class JournalScan {
  readonly #store: Pick<Store, 'readSegments'>;
  readonly #runId: string;
  readonly #protocol: Protocol;
  readonly #hash = createHash('sha256');
  #cursor = FIRST_SEGMENT;
  #digest = FIRST_DIGEST;
  #bytes = 0;
  #lines = 0;
  #nextSeq = 1;
  #problem: Message | null = null;

  readonly #lastSeq: number;

  // Segments that start after `lastSeq` do not belong to the scan.
  constructor(
    store: Pick<Store, 'readSegments'>,
    runId: string,
    { protocol, lastSeq = Infinity }: { readonly protocol: Protocol; readonly lastSeq?: number },
  ) {
    this.#store = store;
    this.#runId = runId;
    this.#protocol = protocol;
    // A damaged number may be larger than any number that a query accepts.
    this.#lastSeq = Math.min(lastSeq, Number.MAX_SAFE_INTEGER);
  }

  get digest(): string {
    return this.#digest;
  }

  get lines(): number {
    return this.#lines;
  }

  // The lines of the segments that were not read yet, segment by segment. Another call reads the segments stored since.
  async *read(): AsyncGenerator<readonly string[]> {
    while (this.#cursor < this.#lastSeq) {
      // Lets other work of this process run between two pages.
      await new Promise((resolve) => setImmediate(resolve));
      const page = await this.#store.readSegments(this.#runId, this.#protocol, this.#cursor, PAGE_BYTES);
      if (page.length === 0) return;
      for (const { body, ...range } of page) {
        if (range.seq_from > this.#lastSeq) return;
        this.#cursor = range.seq_from;
        this.#hash.update(body);
        this.#bytes += body.length;
        if (this.#protocol === 'rasp') this.#digest = nextDigest(this.#digest, body);
        const { lines } = splitLines(body);
        this.#problem ??= this.#explainRange(range, lines) ?? this.#explainTimes(range, lines);
        this.#nextSeq = range.seq_to + 1;
        this.#lines += lines.length;
        yield lines;
      }
    }
  }

  // With a wrong number a reader would miss lines or get some twice.
  #explainRange({ seq_from: from, seq_to: to }: SegmentRange, lines: readonly string[]): Message | null {
    if (from !== this.#nextSeq || to < from)
      return finding('segments.after', { journal: this.#protocol, line: this.#nextSeq - 1, from, to });
    return lines.length === to - from + 1
      ? null
      : finding('segments.lines', { journal: this.#protocol, lines: lines.length, from, to });
  }

  #explainTimes({ seq_from: seq, ts_from: from, ts_to: to }: SegmentRange, lines: readonly string[]): Message | null {
    let [text, ts] = ['', NaN];
    for (const [index, line] of lines.entries()) {
      const time = timeIn(line);
      if (time !== text) [text, ts] = [time, Date.parse(time)];
      if (ts < from || ts > to) return finding('segments.time', { journal: this.#protocol, line: seq + index });
    }
    return null;
  }

  // The first problem with the numbers and times of the segments, or null.
  get problem(): Message | null {
    return this.#problem;
  }

  // Whether the file has exactly the bytes that were read. Waits for a file that is too short.
  async isInFile(path: string, waitForFiles: WaitForFiles): Promise<boolean> {
    while (((await fileSize(path)) ?? 0) < this.#bytes && (await waitForFiles()));
    const comparison = await compareFile(path, { bytes: this.#bytes, sha256: this.#hash.copy().digest('hex') });
    return comparison === 'same' || (comparison === 'missing' && this.#bytes === 0);
  }
}

const TIME = '"ts":"';

// Parley writes the time before any text that comes from elsewhere, so the first one is that of the event.
function timeIn(line: string): string {
  const from = line.indexOf(TIME);
  return from < 0 ? '' : line.slice(from + TIME.length, line.indexOf('"', from + TIME.length));
}
