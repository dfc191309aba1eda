// Commits writes. All writes of one event-loop tick share a transaction, so that many concurrent runs cost the disk one
// write. A call resolves only after its part is on the disk: SQLite syncs each commit before it returns and before
// another process can see it. Writes of one kind are committed in the order of the calls. Urgent ones do not wait for
// the others that are queued: a reader waits for a flush, while the ends of hundreds of turns may take a second.
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

interface AddOptions {
  // About how much the write changes.
  readonly bytes?: number;
  // No other write shares its transaction.
  readonly alone?: boolean;
  readonly urgent?: boolean;
}

export interface WriteOptions {
  // Throws if the open files are no longer those of the database.
  readonly checkFiles?: CheckFiles | undefined;
  readonly participant?: Participant | undefined;
}

// Takes the next group out of the queue.
function nextGroup(queue: Write[]): Write[] {
  let bytes = 0;
  const isFirstAlone = queue[0]?.alone;
  const beyond = queue.findIndex((write, index) => {
    bytes += write.bytes;
    return index > 0 && (bytes > GROUP_BYTES || write.alone || isFirstAlone);
  });
  return queue.splice(0, beyond < 0 ? queue.length : beyond);
}

export class Writes {
  readonly #db: Database;
  readonly #checkFiles: CheckFiles;
  readonly #participant: Participant;
  readonly #urgent: Write[] = [];
  readonly #others: Write[] = [];
  // Whether the last group was urgent.
  #wasUrgent = false;

  constructor(db: Database, { checkFiles = () => {}, participant = NOBODY }: WriteOptions = {}) {
    this.#db = db;
    this.#checkFiles = checkFiles;
    this.#participant = participant;
  }

  // The work is synchronous and either does all of its part or throws; it is done again where others kept it from being
  // stored. `onCommitted` is called before anything else is written, with the time since the write was requested.
  add<T>(
    work: () => T,
    onCommitted: (result: T, ms: number) => void = () => {},
    { bytes = 0, alone = false, urgent = false }: AddOptions = {},
  ): Promise<T> {
    const asked = performance.now();
    return new Promise((resolve, fail) => {
      const done = (result: unknown) => {
        onCommitted(result as T, performance.now() - asked);
        resolve(result as T);
      };
      const isFirst = this.#urgent.length + this.#others.length === 0;
      (urgent ? this.#urgent : this.#others).push({ work, done, fail, bytes, alone });
      if (isFirst) setImmediate(() => this.#writeGroups());
    });
  }

  // Writes everything that is queued, without waiting for more: the database can be closed then.
  drain(): void {
    for (const queue of [this.#urgent, this.#others]) while (queue.length > 0) this.#write(nextGroup(queue));
  }

  // Other work runs between two groups.
  #writeGroups(): void {
    const group = nextGroup(this.#queue());
    if (group.length === 0) return;
    const isLast = this.#urgent.length + this.#others.length === 0;
    this.#write(group);
    // Writes that were queued meanwhile have their own tick.
    if (!isLast) setImmediate(() => this.#writeGroups());
  }

  // Takes turns while both kinds are queued, so that neither waits for all of the other.
  #queue(): Write[] {
    const isTurn = this.#urgent.length > 0 && !(this.#wasUrgent && this.#others.length > 0);
    this.#wasUrgent = isTurn;
    return isTurn ? this.#urgent : this.#others;
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
