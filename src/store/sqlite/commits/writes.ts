// Commits writes in the order of the calls. All writes of one event-loop tick share a transaction, so that many
// concurrent runs cost the disk one write. A call resolves only after its part is on the disk: SQLite syncs each commit
// before it returns and before another process can see it.
import { rollback, type Database } from '../open-database.js';
import type { CheckFiles } from './watch-files.js';

// A larger transaction would block other work for too long: the rest is written in another one.
const GROUP_BYTES = 1024 * 1024;

interface Write {
  readonly bytes: number;
  readonly alone: boolean;
  readonly work: () => unknown;
  // Called when the write is on the disk.
  readonly done: (result: unknown) => void;
  readonly fail: (error: unknown) => void;
}

// What the writes of a transaction have in common.
export interface Participant {
  // Called at the end of the transaction, within it.
  store(): void;
  committed(): void;
  rolledBack(): void;
}

const NOBODY: Participant = { store: () => {}, committed: () => {}, rolledBack: () => {} };

export interface WriteOptions {
  // Throws if the open files are no longer those of the database.
  readonly checkFiles?: CheckFiles | undefined;
  readonly participant?: Participant | undefined;
}

export class Writes {
  readonly #db: Database;
  readonly #checkFiles: CheckFiles;
  readonly #participant: Participant;
  #waiting: Write[] = [];

  constructor(db: Database, { checkFiles = () => {}, participant = NOBODY }: WriteOptions = {}) {
    this.#db = db;
    this.#checkFiles = checkFiles;
    this.#participant = participant;
  }

  // The work is synchronous and either does all of its part or throws; it is done again where others kept it from being
  // stored. `onCommitted` is called before anything else is written, with the time since the write was requested.
  // `bytes` is about how much it writes. `alone`: no other write shares its transaction.
  add<T>(
    work: () => T,
    onCommitted: (result: T, ms: number) => void = () => {},
    { bytes = 0, alone = false }: Partial<Pick<Write, 'bytes' | 'alone'>> = {},
  ): Promise<T> {
    const asked = performance.now();
    return new Promise((resolve, fail) => {
      const done = (result: unknown) => {
        onCommitted(result as T, performance.now() - asked);
        resolve(result as T);
      };
      if (this.#waiting.push({ work, done, fail, bytes, alone }) === 1) setImmediate(() => this.#writeGroups());
    });
  }

  // Writes everything that is queued, without waiting for more: the database can be closed then.
  drain(): void {
    while (this.#waiting.length > 0) this.#write(this.#nextGroup());
  }

  // Other work runs between two groups.
  #writeGroups(): void {
    if (this.#waiting.length === 0) return;
    const group = this.#nextGroup();
    const isLast = this.#waiting.length === 0;
    this.#write(group);
    // Writes that were queued meanwhile have their own tick.
    if (!isLast) setImmediate(() => this.#writeGroups());
  }

  #nextGroup(): Write[] {
    let bytes = 0;
    const isFirstAlone = this.#waiting[0]?.alone;
    const beyond = this.#waiting.findIndex((write, index) => {
      bytes += write.bytes;
      return index > 0 && (bytes > GROUP_BYTES || write.alone || isFirstAlone);
    });
    return this.#waiting.splice(0, beyond < 0 ? this.#waiting.length : beyond);
  }

  // If a group cannot be written together, it is split in halves: an invalid write, or one that is too large for the
  // remaining space, must not fail the others.
  #write(group: readonly Write[]): void {
    try {
      // Checked first: a refused write must not be stored.
      this.#checkFiles();
      this.#db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // Another process has locked the file: each part would wait for it in vain.
      for (const { fail } of group) fail(error);
      return;
    }
    let results: unknown[];
    try {
      results = group.map(({ work }) => work());
      this.#participant.store();
      this.#db.exec('COMMIT');
    } catch (error) {
      rollback(this.#db);
      this.#participant.rolledBack();
      const half = group.length >> 1;
      if (half === 0) return group[0]?.fail(error);
      this.#write(group.slice(0, half));
      return this.#write(group.slice(half));
    }
    this.#participant.committed();
    // A commit into files that were deleted meanwhile is not acknowledged.
    try {
      this.#checkFiles();
    } catch (error) {
      for (const { fail } of group) fail(error);
      return;
    }
    for (const [index, { done }] of group.entries()) done(results[index]);
  }
}
