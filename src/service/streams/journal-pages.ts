// A run's events as the bytes of an SSE stream, in pages: made once for all who read them, forgotten when they are old.
// A page is what comes after a seq; the journal only grows, so a page that was made stays right. Of a run whose reader
// keeps up, what was just stored becomes pages at once, and need not be read again.
import { isTerminal, type RunState } from '../../run/statechart.js';
import { headOf, loadReadableSummary } from '../../journal/load-run.js';
import { findDamagedPiece } from '../../journal/read-readable.js';
import { namedFrame } from './event-stream.js';
import { damageIn, DamagedDataError } from '../../kernel/stored-json.js';
import { countLines, cutLines } from '../../store/cut-segments.js';
import type { Committed, Lines, Protocol, Store } from '../../store/store.js';
import type { RunSummary } from '../../store/summary-reader.js';

// What a slow reader holds on to.
const PAGE_BYTES = 64 * 1024;
// Stored pieces are larger than a page, and reading one again for each page would cost as much each time.
const READ_BYTES = 512 * 1024;
const CACHE_BYTES = 16 * 1024 * 1024;
// What a page costs besides its bytes: its key, its places in the lists. Short ones would else be kept by the ten
// thousand.
const PAGE_COST_BYTES = 512;

export interface Page {
  // Null: nothing comes after the cursor now.
  readonly bytes: Buffer | null;
  readonly lastSeq: number;
  // Set when the run has ended and nothing comes after this page.
  readonly ended: RunState | null;
}

// A journal that somebody reads now.
interface Followed {
  readers: number;
  // The furthest that any of them has come.
  asked: number;
  // Where it ends, while it is played: nothing comes after it until more is stored. Not known where others write too.
  end: number | null;
  // What was stored last, and what before that, begin here.
  last: number;
  beforeLast: number;
}

interface Reading {
  readonly runId: string;
  readonly protocol: Protocol;
  readonly run: RunSummary;
  // The last event, if the run has ended.
  readonly endedAt: number;
  // The page that says that nothing comes after the cursor now.
  readonly nothing: Page;
}

export class JournalPages {
  readonly #store: Store;
  readonly #pages = new Map<string, Page & { readonly bytes: Buffer }>();
  // Reads under way: who asks for the same meanwhile waits for the same.
  readonly #reading = new Map<string, Promise<Page>>();
  readonly #followed = new Map<string, Followed>();
  readonly #stopListening: () => void;
  #cached = 0;

  constructor(store: Store) {
    this.#store = store;
    this.#stopListening = store.onCommitted((stored) => this.#stored(stored));
  }

  close(): void {
    this.#stopListening();
  }

  // From now on somebody reads it, until what is returned is called.
  join(runId: string, protocol: Protocol): () => void {
    const key = `${runId} ${protocol}`;
    const followed = this.#followed.get(key) ?? { readers: 0, asked: 0, end: null, last: 0, beforeLast: 0 };
    this.#followed.set(key, followed);
    followed.readers += 1;
    return () => {
      followed.readers -= 1;
      if (followed.readers === 0) this.#followed.delete(key);
    };
  }

  // `version` is what the asker knew of the run before: a read that began earlier than that does not count for it.
  async after(runId: string, protocol: Protocol, cursor: number, version: number): Promise<Page> {
    const followed = this.#followed.get(`${runId} ${protocol}`);
    if (followed) followed.asked = Math.max(followed.asked, cursor);
    if (followed?.end === cursor) return { bytes: null, lastSeq: cursor, ended: null };
    const key = `${runId} ${protocol} ${cursor}`;
    const kept = this.#pages.get(key);
    if (kept) {
      // The latest used is the last.
      this.#pages.delete(key);
      this.#pages.set(key, kept);
      return kept;
    }
    const readKey = `${key} ${version}`;
    const reading =
      this.#reading.get(readKey) ?? this.#read(runId, protocol, cursor).finally(() => this.#reading.delete(readKey));
    this.#reading.set(readKey, reading);
    return reading;
  }

  async #read(runId: string, protocol: Protocol, cursor: number): Promise<Page> {
    // Before its events: if it has ended by then, they are all there.
    const run = await loadReadableSummary(this.#store, runId);
    const head = headOf(run, protocol);
    const endedAt = isTerminal(run.status) ? head : Infinity;
    const nothing = { bytes: null, lastSeq: cursor, ended: cursor >= endedAt ? run.status : null };
    const reading = { runId, protocol, endedAt, run, nothing };
    try {
      const lines = await this.#store.readLines(runId, protocol, cursor, READ_BYTES);
      return lines === null && cursor < head
        ? await this.#skip(reading, 'missing from the journal')
        : this.#cut(lines, reading);
    } catch (error) {
      if (!damageIn(error)) throw error;
    }
    try {
      // Only the first piece is read for a single line: the damage may be in one behind it.
      return this.#cut(await this.#store.readLines(runId, protocol, cursor, 1), reading);
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      return this.#skip(reading, damage.message);
    }
  }

  // In the place of a damaged piece the reader is told which events it held, and goes on behind it.
  async #skip({ runId, protocol, endedAt, run, nothing }: Reading, message: string): Promise<Page> {
    const piece = findDamagedPiece(
      await this.#store.listSegments(runId, protocol),
      nothing.lastSeq,
      headOf(run, protocol),
      message,
    );
    if (!piece) return nothing;
    return {
      bytes: Buffer.from(namedFrame('damaged', piece)),
      lastSeq: piece.to_seq,
      ended: piece.to_seq >= endedAt ? run.status : null,
    };
  }

  #cut(lines: Lines | null, { runId, protocol, endedAt, run, nothing }: Reading): Page {
    let page: Page = nothing;
    if (!lines) return page;
    // The first comes last: it is asked for now.
    for (const part of [...cutLines(lines, PAGE_BYTES)].toReversed())
      page = this.#keep(runId, protocol, part, part.lastSeq >= endedAt ? run.status : null);
    return page;
  }

  // Its end is told by the store, to those who have read this.
  #stored({ run_id: runId, journal, status, deleted }: Committed): void {
    for (const protocol of ['rasp', 'fcmp'] as const) {
      const followed = this.#followed.get(`${runId} ${protocol}`);
      if (!followed) continue;
      const lines = journal?.[protocol];
      // Then it may be over.
      if (status !== undefined || deleted || !this.#store.isAlone) followed.end = null;
      else if (lines) followed.end = lines.lastSeq;
      if (!lines) continue;
      // Whoever is further behind comes here so late that they would be forgotten by then.
      if (followed.asked >= followed.beforeLast - 1)
        for (const part of cutLines(lines, PAGE_BYTES)) this.#keep(runId, protocol, part, null);
      followed.beforeLast = followed.last;
      followed.last = lines.firstSeq;
    }
  }

  #keep(runId: string, protocol: Protocol, lines: Lines, ended: RunState | null): Page {
    const key = `${runId} ${protocol} ${lines.firstSeq - 1}`;
    const page = { bytes: toFrames(lines), lastSeq: lines.lastSeq, ended };
    // Two reads of different versions may bring the same page: the later takes the place of the other, as the latest
    // used.
    const replaced = this.#pages.get(key);
    this.#pages.delete(key);
    this.#pages.set(key, page);
    this.#cached += costOf(page.bytes) - (replaced ? costOf(replaced.bytes) : 0);
    for (const [oldest, { bytes }] of this.#pages) {
      if (this.#cached <= CACHE_BYTES || oldest === key) break;
      this.#pages.delete(oldest);
      this.#cached -= costOf(bytes);
    }
    return page;
  }
}

function costOf({ length }: Buffer): number {
  return length + PAGE_COST_BYTES;
}

// Each line as a frame that is named by its seq.
function toFrames({ firstSeq, lastSeq, bytes }: Lines): Buffer {
  const count = countLines(bytes);
  // Else the seqs would be wrong.
  if (count !== lastSeq - firstSeq + 1)
    throw new DamagedDataError(`the journal has ${count} lines where events ${firstSeq} to ${lastSeq} should stand`);
  // "id: ", "\ndata: ", "\n\n" in place of "\n", and the digits.
  // Of its own: a small piece of a shared block would keep the whole block.
  const frames = Buffer.allocUnsafeSlow(bytes.length + count * (4 + 7 + 1 + String(lastSeq).length));
  let from = 0;
  let at = 0;
  for (let seq = firstSeq; seq <= lastSeq; seq += 1) {
    const end = bytes.indexOf(0x0a, from) + 1;
    at += frames.write(`id: ${seq}\ndata: `, at, 'latin1');
    at += bytes.copy(frames, at, from, end);
    frames[at] = 0x0a;
    at += 1;
    from = end;
  }
  return frames.subarray(0, at);
}
