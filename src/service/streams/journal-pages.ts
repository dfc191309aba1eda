// Caches a run's events as pages of SSE bytes: each page is built once for all readers and evicted when it is old. A
// page holds the events after a seq; the journal only grows, so a page stays valid. If a reader keeps up with a run,
// new events become pages when they are committed, and need not be read from the store again.
import { isTerminal, type RunState } from '../../run/statechart.js';
import { headOf, loadReadableSummary } from '../../journal/load-run.js';
import { findDamagedPiece } from '../../journal/read-readable.js';
import { namedFrame } from './event-stream.js';
import { OutputPace } from './output-pace.js';
import { damageIn } from '../../kernel/stored-json.js';
import { framePages, type FramedPage } from './frame-pages.js';
import type { Committed, Lines, Protocol, Store } from '../../store/store.js';
import type { RunSummary } from '../../store/summary-reader.js';

// Stored segments are larger than a page, and reading one again for each page would be expensive.
const READ_BYTES = 512 * 1024;
// For each reader, and for all together. A few readers do not need more, and pages that are evicted soon are freed
// soon.
const READER_BYTES = 8 * 1024 * 1024;
const CACHE_BYTES = 16 * 1024 * 1024;
// The memory of a page besides its bytes: its key and its places in the lists. Otherwise tens of thousands of short
// pages would be kept.
const PAGE_COST_BYTES = 512;

export interface Page {
  // Null: there is no event after the cursor yet.
  readonly bytes: Buffer | null;
  readonly lastSeq: number;
  // Set if the run has ended and this page is the last.
  readonly ended: RunState | null;
}

export interface JournalRef {
  readonly runId: string;
  readonly protocol: Protocol;
}

// A journal with at least one reader.
interface Followed {
  readers: number;
  // The furthest position of its readers.
  asked: number;
  // The end of the journal while a turn is running: nothing follows until more is stored. Unknown if other hosts also
  // write.
  end: number | null;
  // The start positions of the last two commits.
  last: number;
  beforeLast: number;
}

interface Reading extends JournalRef {
  readonly run: RunSummary;
  // The last event, if the run has ended.
  readonly endedAt: number;
  // The page for a cursor at the end of the journal.
  readonly emptyPage: Page;
}

export class JournalPages {
  readonly #store: Store;
  readonly #pace: OutputPace;
  readonly #pages = new Map<string, Page & { readonly bytes: Buffer }>();
  // Reads in progress: callers that need the same page share them.
  readonly #reading = new Map<string, Promise<Page>>();
  readonly #followed = new Map<string, Followed>();
  readonly #stopListening: () => void;
  #cached = 0;
  #readers = 0;

  constructor(store: Store, pace = new OutputPace()) {
    this.#store = store;
    this.#pace = pace;
    this.#stopListening = store.onCommitted((stored) => this.#stored(stored));
  }

  close(): void {
    this.#stopListening();
  }

  // Registers a reader; the returned function removes it.
  join({ runId, protocol }: JournalRef): () => void {
    const key = `${runId} ${protocol}`;
    const followed = this.#followed.get(key) ?? { readers: 0, asked: 0, end: null, last: 0, beforeLast: 0 };
    this.#followed.set(key, followed);
    followed.readers += 1;
    this.#readers += 1;
    return () => {
      followed.readers -= 1;
      this.#readers -= 1;
      if (followed.readers === 0) this.#followed.delete(key);
    };
  }

  // Returns the page after the cursor. `version` is the version of the run that the caller knows: the result of a read
  // that began before that version is not used.
  async after(journal: JournalRef, cursor: number, version: number): Promise<Page> {
    const { runId, protocol } = journal;
    const followed = this.#followed.get(`${runId} ${protocol}`);
    if (followed) followed.asked = Math.max(followed.asked, cursor);
    if (followed?.end === cursor) return { bytes: null, lastSeq: cursor, ended: null };
    const key = `${runId} ${protocol} ${cursor}`;
    const kept = this.#pages.get(key);
    if (kept) {
      this.#pages.delete(key);
      // Nobody else needs it: kept longer, it would survive several collections of young objects, and its bytes would
      // be freed much later.
      if (followed?.readers === 1) this.#cached -= costOf(kept.bytes);
      // Moves the page to the end: pages are evicted from the beginning.
      else this.#pages.set(key, kept);
      return kept;
    }
    const readKey = `${key} ${version}`;
    const reading =
      this.#reading.get(readKey) ?? this.#read(journal, cursor).finally(() => this.#reading.delete(readKey));
    this.#reading.set(readKey, reading);
    return reading;
  }

  async #read({ runId, protocol }: JournalRef, cursor: number): Promise<Page> {
    // Loads the run before its events: if it has ended, all its events are stored.
    const run = await loadReadableSummary(this.#store, runId);
    const head = headOf(run, protocol);
    const endedAt = isTerminal(run.status) ? head : Infinity;
    const emptyPage = { bytes: null, lastSeq: cursor, ended: cursor >= endedAt ? run.status : null };
    const reading = { runId, protocol, endedAt, run, emptyPage };
    try {
      const lines = await this.#store.readLines(runId, protocol, cursor, READ_BYTES);
      await this.#pace.sent(lines?.bytes.length ?? 0);
      return lines === null && cursor < head
        ? await this.#skip(reading, 'missing from the journal')
        : this.#cut(lines, reading);
    } catch (error) {
      if (!damageIn(error)) throw error;
    }
    try {
      // For a single line only the first segment is read: the damage may be in a later one.
      return this.#cut(await this.#store.readLines(runId, protocol, cursor, 1), reading);
    } catch (error) {
      const damage = damageIn(error);
      if (!damage) throw error;
      return this.#skip(reading, damage.message);
    }
  }

  // Reports the events of a damaged segment to the reader and continues after it.
  async #skip({ runId, protocol, endedAt, run, emptyPage }: Reading, message: string): Promise<Page> {
    const piece = findDamagedPiece(
      await this.#store.listSegments(runId, protocol),
      emptyPage.lastSeq,
      headOf(run, protocol),
      message,
    );
    if (!piece) return emptyPage;
    return {
      bytes: Buffer.from(namedFrame('damaged', piece)),
      lastSeq: piece.to_seq,
      ended: piece.to_seq >= endedAt ? run.status : null,
    };
  }

  #cut(lines: Lines | null, reading: Reading): Page {
    const { endedAt, run, emptyPage } = reading;
    let page: Page = emptyPage;
    if (!lines) return page;
    // In reverse, because the caller needs the first page.
    for (const framed of [...framePages(lines)].toReversed())
      page = this.#keep(reading, framed, framed.lastSeq >= endedAt ? run.status : null);
    return page;
  }

  // The store reports later commits to readers of this journal.
  #stored({ run_id: runId, journal, status, deleted }: Committed): void {
    for (const protocol of ['rasp', 'fcmp'] as const) {
      const followed = this.#followed.get(`${runId} ${protocol}`);
      if (!followed) continue;
      const lines = journal?.[protocol];
      // The run may have ended.
      if (status !== undefined || deleted || !this.#store.isComplete) followed.end = null;
      else if (lines) followed.end = lines.lastSeq;
      if (!lines) continue;
      // Not for a reader that is further behind: the pages would be evicted before it needs them.
      if (followed.asked >= followed.beforeLast - 1)
        for (const framed of framePages(lines)) this.#keep({ runId, protocol }, framed, null);
      followed.beforeLast = followed.last;
      followed.last = lines.firstSeq;
    }
  }

  #keep({ runId, protocol }: JournalRef, { firstSeq, lastSeq, bytes }: FramedPage, ended: RunState | null): Page {
    const key = `${runId} ${protocol} ${firstSeq - 1}`;
    const page = { bytes, lastSeq, ended };
    // Two reads of different versions may build the same page: the later one replaces the earlier, and moves to the
    // end.
    const replaced = this.#pages.get(key);
    this.#pages.delete(key);
    this.#pages.set(key, page);
    this.#cached += costOf(page.bytes) - (replaced ? costOf(replaced.bytes) : 0);
    const limit = Math.min(CACHE_BYTES, Math.max(1, this.#readers) * READER_BYTES);
    for (const [oldest, { bytes }] of this.#pages) {
      if (this.#cached <= limit || oldest === key) break;
      this.#pages.delete(oldest);
      this.#cached -= costOf(bytes);
    }
    return page;
  }
}

function costOf({ length }: Buffer): number {
  return length + PAGE_COST_BYTES;
}
