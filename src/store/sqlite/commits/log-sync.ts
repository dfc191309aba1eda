// Syncs the write-ahead log of a database in another thread, so that this one does not wait for the disk.
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';

export interface LogSync {
  // Calls back when everything that is in the log now is on the disk. One sync at a time.
  sync(done: (error: unknown) => void): void;
  // Completes the sync in progress before it returns.
  syncNow(): void;
  // Syncs in this thread.
  syncHere(): void;
  close(): void;
}

export class WriteAheadLog implements LogSync {
  readonly #path: string;
  // SQLite keeps the file as long as the database is open, and has its locks on other files. So this process may open
  // and close it.
  #file: number | null = null;
  #done: ((error: unknown) => void) | null = null;

  // The path of the database.
  constructor(path: string) {
    this.#path = `${path}-wal`;
  }

  sync(done: (error: unknown) => void): void {
    this.#done = done;
    try {
      fdatasync(this.#open(), (error) => {
        if (this.#done === done) this.#finish(error);
      });
    } catch (error) {
      this.#finish(error);
    }
  }

  syncNow(): void {
    if (!this.#done) return;
    try {
      fdatasyncSync(this.#open());
      this.#finish(null);
    } catch (error) {
      this.#finish(error);
    }
  }

  syncHere(): void {
    try {
      fdatasyncSync(this.#open());
    } catch (error) {
      // Without a log, there is nothing to sync.
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    }
  }

  close(): void {
    if (this.#file !== null) closeSync(this.#file);
    this.#file = null;
  }

  #open(): number {
    return (this.#file ??= openSync(this.#path, 'r'));
  }

  #finish(error: unknown): void {
    const done = this.#done;
    this.#done = null;
    done?.(error);
  }
}
