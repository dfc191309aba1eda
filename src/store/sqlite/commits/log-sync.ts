// Syncs the write-ahead log of a database in another thread, so that this one does not wait for the disk.
import { closeSync, fdatasync, fdatasyncSync, openSync } from 'node:fs';

export interface LogSync {
  // Resolves when everything that is in the log now is on the disk. One sync at a time.
  sync(): Promise<void>;
  // Syncs in this thread.
  syncHere(): void;
  // No sync is in progress.
  close(): void;
}

export class WriteAheadLog implements LogSync {
  readonly #path: string;
  // SQLite keeps the file as long as the database is open, and has its locks on other files. So this process may open
  // and close it.
  #file: number | null = null;

  // The path of the database.
  constructor(path: string) {
    this.#path = `${path}-wal`;
  }

  sync(): Promise<void> {
    return new Promise((resolve, fail) => {
      fdatasync(this.#open(), (error) => (error ? fail(error) : resolve()));
    });
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
}
