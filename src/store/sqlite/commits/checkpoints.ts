// Moves what is in the write-ahead log into the database file, in another thread, so that this one does not wait for
// the disk. SQLite begins the log anew only when all of it was moved, which a busy writer would never let happen: so
// the thread moves most of it meanwhile, and then writers wait while it moves the rest.
import { Worker } from 'node:worker_threads';
import { driverName, type Database } from '../open-database.js';

const PROGRAM = new URL('./checkpoint-thread.mjs', import.meta.url);
// The thread begins at this size of the log, as SQLite itself would do.
const PAGES = 1000;
// Writers wait if they have written this much before the thread has finished.
const MOST_PAGES = 4 * PAGES;

export class Checkpoints {
  readonly #db: Database;
  readonly #path: string;
  #worker: Worker | null = null;
  // About how many pages the transactions have written since the last checkpoint began.
  #pages = 0;
  #moving: Promise<void> | null = null;
  #onMoved: (isDone: boolean) => void = () => {};
  #hasRest = false;
  #isOver = false;

  // The connection of the writer and the path of the database.
  constructor(db: Database, path: string) {
    this.#db = db;
    this.#path = path;
    db.exec('PRAGMA wal_autocheckpoint = 0');
  }

  // Call after each transaction.
  grew(pages: number): void {
    this.#pages += pages;
    if (this.#pages >= PAGES && !this.#moving && !this.#hasRest && !this.#isOver) void this.#move({ isRest: false });
  }

  // Call before each transaction. If it returns a promise, begin no transaction until that resolves.
  wait(): Promise<void> | null {
    if (this.#hasRest && !this.#isOver) return this.#move({ isRest: true });
    return this.#pages >= MOST_PAGES ? this.#moving : null;
  }

  // The database is still open. No transaction follows.
  async close(): Promise<void> {
    this.#isOver = true;
    const worker = this.#worker;
    if (!worker) return;
    const exit = new Promise((resolve) => worker.once('exit', resolve));
    worker.ref();
    worker.postMessage('close');
    await exit;
  }

  #move({ isRest }: { readonly isRest: boolean }): Promise<void> {
    this.#pages = 0;
    this.#hasRest = false;
    const worker = (this.#worker ??= this.#start());
    worker.ref();
    worker.postMessage('checkpoint');
    this.#moving = new Promise<boolean>((resolve) => {
      this.#onMoved = resolve;
    }).then((isDone) => {
      worker.unref();
      this.#moving = null;
      this.#hasRest = isDone && !isRest;
    });
    return this.#moving;
  }

  #start(): Worker {
    const workerData = { path: this.#path, driver: driverName() };
    // Its output is not shown to anybody, and not read: a reader would keep the process alive.
    const worker = new Worker(PROGRAM, { workerData, env: {}, execArgv: [], argv: [], stdout: true, stderr: true });
    worker.on('message', ({ isDone }: { readonly isDone: boolean }) => this.#onMoved(isDone));
    worker.on('error', () => {});
    worker.on('exit', () => this.#ended());
    return worker;
  }

  // Without the thread, SQLite moves the log itself.
  #ended(): void {
    this.#worker = null;
    if (!this.#isOver) this.#db.exec(`PRAGMA wal_autocheckpoint = ${PAGES}`);
    this.#isOver = true;
    this.#onMoved(false);
  }
}
