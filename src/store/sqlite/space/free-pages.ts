// Returns free pages of the database to the file system. Deleted rows leave free pages, which later rows use; the
// others are removed from the end of the file in small steps. Each step is a transaction of its own, after a pause in
// which other writes run. It moves a few pages from the end of the file into free ones, and takes as long as a few
// flushes, however large the database is.
import { statSync } from 'node:fs';
import type { Timers } from '../../../kernel/timers.js';
import { backgroundTimers } from '../commits/background-timers.js';
import type { Writes } from '../commits/writes.js';
import { BUSY_MS, type Database, type Statement } from '../open-database.js';

// One check after many deletions.
export const CHECK_MS = 1000;
// Between two steps.
export const PAUSE_MS = 50;
// While a reader in another process needs an old state of the database, a step would only make the log longer: the file
// becomes smaller when the log is moved into it. SQLite keeps the log below this size otherwise.
export const HELD_UP_MS = 5000;
const MOST_LOG_BYTES = 16 * 1024 * 1024;

// A reserve stays free for the next rows, so that the file of a busy server does not shrink and grow all the time: this
// part of all pages, but at least and at most so many. Steps begin above twice the reserve.
const RESERVED_PART = 1 / 8;
const LEAST_RESERVED = 64;
const MOST_RESERVED = 2048;

// The time of a step depends on how many pages are free and on the machine, so the next step is adapted to it.
const STEP_MS = 3;
const FIRST_STEP_PAGES = 16;
const MOST_STEP_PAGES = 32;

const INCREMENTAL = 2;

interface Counts {
  readonly free: number;
  readonly pages: number;
}

export class FreePages {
  readonly #db: Database;
  readonly #writes: Writes;
  readonly #timers: Timers;
  readonly #count: Statement;
  readonly #path: string;
  #cancel: (() => void) | null = null;
  #isStepping = false;
  #isOver: boolean;
  #stepPages = FIRST_STEP_PAGES;

  constructor(db: Database, writes: Writes, timers: Timers = backgroundTimers) {
    this.#db = db;
    this.#writes = writes;
    this.#timers = timers;
    this.#count = db.prepare(
      'SELECT freelist_count AS free, page_count AS pages FROM pragma_freelist_count, pragma_page_count',
    );
    this.#path = (db.prepare('PRAGMA database_list').get() as { file: string }).file;
    // The database of an earlier version keeps its pages until `parley compact` has converted it.
    this.#isOver = readMode(db) !== INCREMENTAL;
    // An earlier process may not have finished.
    this.freed();
  }

  // Call after commits that may have deleted rows, however many they are.
  freed(): void {
    if (!this.#cancel && !this.#isStepping) this.#set(CHECK_MS, () => this.#begin());
  }

  // The database is still open. No step follows, except one that was requested already.
  close(): void {
    this.#isOver = true;
    this.#cancel?.();
  }

  #set(ms: number, fire: () => void): void {
    if (this.#isOver) return;
    this.#cancel = this.#timers.set(ms, () => {
      this.#cancel = null;
      try {
        if (this.#db.isOpen) fire();
      } catch {
        // The database cannot be read, which other work reports. A later commit tries again.
      }
    });
  }

  #begin(): void {
    const counts = this.#read();
    if (counts.free > 2 * reserveOf(counts)) void this.#step();
    // Another process held it up earlier.
    else if (this.#logBytes() > MOST_LOG_BYTES) this.#moveLog();
  }

  async #step(): Promise<void> {
    if (this.#logBytes() > MOST_LOG_BYTES) return this.#set(HELD_UP_MS, () => this.#begin());
    const pages = Math.min(this.#stepPages, surplusOf(this.#read()));
    if (pages === 0) return;
    this.#isStepping = true;
    try {
      await this.#writes.add(() => this.#vacuum(pages), undefined, { alone: true });
    } catch {
      // The disk is full or fails, which other writes report. A later commit tries again.
      return;
    } finally {
      this.#isStepping = false;
    }
    if (this.#isOver) return;
    if (surplusOf(this.#read()) > 0) this.#set(PAUSE_MS, () => void this.#step());
    else this.#moveLog();
  }

  // The file itself becomes smaller when the log is moved into it. If that is not possible now, SQLite does it later.
  #moveLog(): void {
    try {
      // Not while another process reads: nobody should wait for it.
      this.#db.exec('PRAGMA busy_timeout = 0; PRAGMA wal_checkpoint(TRUNCATE)');
    } catch {
      // The disk fails, which other writes report.
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    }
  }

  #logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  // Within a transaction.
  #vacuum(pages: number): void {
    const from = performance.now();
    // All of it: a prepared statement would have to be stepped once for each page.
    this.#db.exec(`PRAGMA incremental_vacuum(${pages})`);
    const ms = Math.max(0.1, performance.now() - from);
    this.#stepPages = Math.max(1, Math.min(MOST_STEP_PAGES, 2 * pages, Math.floor((pages * STEP_MS) / ms)));
  }

  #read(): Counts {
    return this.#count.get() as unknown as Counts;
  }
}

function reserveOf({ pages }: Counts): number {
  return Math.max(LEAST_RESERVED, Math.min(MOST_RESERVED, Math.floor(pages * RESERVED_PART)));
}

// How many pages may be returned.
function surplusOf(counts: Counts): number {
  return Math.max(0, counts.free - reserveOf(counts));
}

function readMode(db: Database): number {
  return (db.prepare('PRAGMA auto_vacuum').get() as { auto_vacuum: number }).auto_vacuum;
}
