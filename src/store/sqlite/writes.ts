// Everything that is written, in the order in which it was asked for: what comes in one moment is one transaction, so
// that many runs at once cost the disk one write and not one each. Nobody is answered before his part is on the disk.
import { rollback, type Database } from './open-database.js';
import type { CheckFiles } from './watch-files.js';

// A transaction with more than this blocks other work for too long: what is beyond it is written in another one.
const GROUP_BYTES = 1024 * 1024;

interface Write {
  readonly bytes: number;
  readonly work: () => unknown;
  // It is on the disk.
  readonly done: (result: unknown) => void;
  readonly fail: (error: unknown) => void;
}

export class Writes {
  readonly #db: Database;
  readonly #checkFiles: CheckFiles;
  #waiting: Write[] = [];

  constructor(db: Database, checkFiles: CheckFiles = () => {}) {
    this.#db = db;
    this.#checkFiles = checkFiles;
  }

  // The work is synchronous and either does all of its part or throws; it is done again where others kept it from being
  // stored. `told` is called before anything else is written, with the time since it was asked for.
  // `bytes` is about how much it writes.
  add<T>(work: () => T, told: (result: T, ms: number) => void = () => {}, bytes = 0): Promise<T> {
    const asked = performance.now();
    return new Promise((resolve, fail) => {
      const done = (result: unknown) => {
        told(result as T, performance.now() - asked);
        resolve(result as T);
      };
      if (this.#waiting.push({ work, done, fail, bytes }) === 1) setImmediate(() => this.#writeGroups());
    });
  }

  // Writes all that waits, without waiting for more.
  flush(): void {
    while (this.#waiting.length > 0) this.#write(this.#nextGroup());
  }

  // Other work runs between two groups.
  #writeGroups(): void {
    if (this.#waiting.length === 0) return;
    const group = this.#nextGroup();
    const isLast = this.#waiting.length === 0;
    this.#write(group);
    // What was added meanwhile to an empty list has its own turn.
    if (!isLast) setImmediate(() => this.#writeGroups());
  }

  #nextGroup(): Write[] {
    let bytes = 0;
    const beyond = this.#waiting.findIndex((write, index) => (bytes += write.bytes) > GROUP_BYTES && index > 0);
    return this.#waiting.splice(0, beyond < 0 ? this.#waiting.length : beyond);
  }

  // What cannot be written together is written in halves: one that is wrong, or too large for what room is left, must
  // not take the others with it.
  #write(group: readonly Write[]): void {
    try {
      this.#checkFiles();
      this.#db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // Somebody else has the file: each would wait for it in vain.
      for (const { fail } of group) fail(error);
      return;
    }
    let results: unknown[];
    try {
      results = group.map(({ work }) => work());
      this.#db.exec('COMMIT');
    } catch (error) {
      rollback(this.#db);
      const half = group.length >> 1;
      if (half === 0) return group[0]?.fail(error);
      this.#write(group.slice(0, half));
      return this.#write(group.slice(half));
    }
    // What was committed into files that are gone is not acknowledged.
    try {
      this.#checkFiles();
    } catch (error) {
      for (const { fail } of group) fail(error);
      return;
    }
    for (const [index, { done }] of group.entries()) done(results[index]);
  }
}
