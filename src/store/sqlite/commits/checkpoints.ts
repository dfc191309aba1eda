// Moves what is in the write-ahead log into the database file, in another thread, so that this one does not wait for
// the disk. SQLite begins the log anew only when all of it was moved, which a busy writer would never let happen: so
// the thread moves most of it meanwhile, and then writers wait while it moves the rest.
//
// SQLite never makes the file of the log smaller by itself. It grows beyond its usual size when a reader in another
// process holds a transaction for long: the log keeps everything that was written meanwhile. So the file is emptied
// when the reader has ended: when nothing is written for a while, or if it is much too large, when the rest is moved.
import { statSync } from 'node:fs';
import { Worker } from 'node:worker_threads';
import type { Timers } from '../../../kernel/timers.js';
import { driverName, PAGE_BYTES, type Database } from '../open-database.js';
import { backgroundTimers } from './background-timers.js';

const PROGRAM = new URL('./checkpoint-thread.mjs', import.meta.url);
// The thread begins at this size of the log, as SQLite itself would do.
const PAGES = 1000;
// Writers wait if they have written this much before the thread has finished.
const MOST_PAGES = 4 * PAGES;
// A busy writer usually stays well below this size of the file.
const MOST_BYTES = 2 * MOST_PAGES * PAGE_BYTES;
// After this time without a transaction, a file above IDLE_BYTES is emptied.
export const IDLE_MS = 2000;
const IDLE_BYTES = PAGES * PAGE_BYTES;

interface Result {
  readonly isDone: boolean;
  // How many pages of the log a reader kept from being moved.
  readonly left: number;
  readonly isEmpty: boolean;
}

const FAILED: Partial<Result> = { isDone: false };

// most: beside the writers. rest, all: the writers wait. all: also empties the file.
type Part = 'most' | 'rest' | 'all';

export class Checkpoints {
  readonly #db: Database;
  readonly #path: string;
  readonly #timers: Timers;
  #worker: Worker | null = null;
  // About how many pages the transactions have written since the last checkpoint began.
  #pages = 0;
  // How many older pages are still in the log.
  #left: number;
  // So many pages may be written while the thread works.
  #most = MOST_PAGES;
  #moving: Promise<void> | null = null;
  #isExclusive = false;
  #onMoved: (result: Partial<Result>) => void = () => {};
  #hasRest = false;
  // Whether the log should be emptied whatever its size.
  #isEndWanted = false;
  #cancelIdle: (() => void) | null = null;
  #hasGrown = false;
  #isOver = false;

  // The connection of the writer and the path of the database.
  constructor(db: Database, path: string, timers: Timers = backgroundTimers) {
    this.#db = db;
    this.#path = path;
    this.#timers = timers;
    db.exec('PRAGMA wal_autocheckpoint = 0');
    // A process that crashed may have left a large one.
    this.#left = this.#logBytes() / PAGE_BYTES;
    this.#awaitIdle();
  }

  // Whether a reader in another process keeps the log from being moved.
  get isHeldUp(): boolean {
    return this.#left > 0;
  }

  // Call after each transaction.
  grew(pages: number): void {
    this.#pages += pages;
    this.#hasGrown = true;
    if (this.#pages >= PAGES && !this.#moving && !this.#hasRest && !this.#isOver) void this.#move('most');
    this.#awaitIdle();
  }

  // Call before each transaction. If it returns a promise, begin no transaction until that resolves.
  wait(): Promise<void> | null {
    if (this.#isExclusive) return this.#moving;
    if (this.#hasRest && !this.#isOver) return this.#move(this.#logBytes() > MOST_BYTES ? 'all' : 'rest');
    return this.#pages >= this.#most ? this.#moving : null;
  }

  // Moves the whole log when nothing is written for a while: only then is a smaller database also a smaller file.
  endSoon(): void {
    this.#isEndWanted = true;
    this.#awaitIdle();
  }

  // The database is still open. No transaction follows.
  async close(): Promise<void> {
    this.#isOver = true;
    this.#cancelIdle?.();
    const worker = this.#worker;
    if (!worker) return;
    const exit = new Promise((resolve) => worker.once('exit', resolve));
    worker.ref();
    worker.postMessage('close');
    await exit;
  }

  #awaitIdle(): void {
    if (this.#isOver || this.#cancelIdle) return;
    this.#cancelIdle = this.#timers.set(IDLE_MS, () => {
      this.#cancelIdle = null;
      if (this.#hasGrown || this.#moving) this.#awaitIdle();
      else this.#idle();
      this.#hasGrown = false;
    });
  }

  #idle(): void {
    if (!this.#isEndWanted && this.#logBytes() <= IDLE_BYTES) return;
    // While a long log is moved, writers should not wait.
    void this.#move(this.#left + this.#pages > MOST_PAGES ? 'most' : 'all').then(() => this.#awaitIdle());
  }

  #move(part: Part): Promise<void> {
    this.#most = Math.max(MOST_PAGES, this.#left + this.#pages);
    this.#pages = 0;
    this.#hasRest = false;
    this.#isExclusive = part !== 'most';
    const worker = (this.#worker ??= this.#start());
    worker.ref();
    worker.postMessage(part === 'all' ? 'empty' : 'move');
    this.#moving = new Promise<Partial<Result>>((resolve) => {
      this.#onMoved = resolve;
    }).then(({ isDone = false, left = this.#left, isEmpty = false }) => {
      worker.unref();
      this.#moving = null;
      this.#isExclusive = false;
      this.#left = left;
      if (isEmpty) this.#isEndWanted = false;
      // While a reader keeps much of the log, or after much was written, the thread begins again.
      this.#hasRest = part === 'most' && isDone && left + this.#pages <= MOST_PAGES;
    });
    return this.#moving;
  }

  #logBytes(): number {
    return statSync(`${this.#path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  }

  #start(): Worker {
    const workerData = { path: this.#path, driver: driverName() };
    // Its output is not shown to anybody, and not read: a reader would keep the process alive.
    const worker = new Worker(PROGRAM, { workerData, env: {}, execArgv: [], argv: [], stdout: true, stderr: true });
    worker.on('message', (result: Result) => this.#onMoved(result));
    worker.on('error', () => {});
    worker.on('exit', () => this.#ended());
    return worker;
  }

  // Without the thread, SQLite moves the log itself, and cuts it to its usual size when it begins the log anew.
  #ended(): void {
    this.#worker = null;
    if (!this.#isOver) this.#db.exec(`PRAGMA wal_autocheckpoint = ${PAGES}; PRAGMA journal_size_limit = ${MOST_BYTES}`);
    this.#isOver = true;
    this.#left = 0;
    this.#onMoved(FAILED);
  }
}
