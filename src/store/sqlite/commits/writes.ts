// Commits writes in the order of the calls. All writes of one event-loop tick share a transaction, so that many
// concurrent runs cost the disk one write. A call resolves only after its part is on the disk: SQLite syncs each commit
// before it returns, but if a transaction has only writes of the kind `later`, another thread syncs it, and this thread
// continues with other work. Until then, no other transaction begins and no reader gets any of it.
import { BUSY_MS, rollback, type Database } from '../open-database.js';
import type { LogSync } from './log-sync.js';
import type { CheckFiles } from './watch-files.js';

// A larger transaction would block other work for too long: the rest is written in another one.
const GROUP_BYTES = 1024 * 1024;

interface Write {
  readonly bytes: number;
  readonly later: boolean;
  readonly work: () => unknown;
  // Called when the write is on the disk.
  readonly done: (result: unknown) => void;
  readonly fail: (error: unknown) => void;
}

// What the writes of a transaction have in common.
export interface Participant {
  // Called at the end of the transaction, within it.
  store(): void;
  // The transaction is on the disk.
  committed(): void;
  rolledBack(): void;
  // The transaction is committed, but its writes have failed, because it may not be on the disk.
  notSynced(): void;
}

const NOBODY: Participant = { store: () => {}, committed: () => {}, rolledBack: () => {}, notSynced: () => {} };

export interface WriteOptions {
  // Runs before anything is acknowledged.
  readonly checkFiles?: CheckFiles | undefined;
  readonly participant?: Participant | undefined;
  // Without it, SQLite syncs every commit.
  readonly log?: LogSync | undefined;
}

// A committed transaction whose sync is in progress.
interface Unsynced {
  readonly group: readonly Write[];
  readonly results: readonly unknown[];
}

export class Writes {
  readonly #db: Database;
  readonly #checkFiles: CheckFiles;
  readonly #participant: Participant;
  readonly #log: LogSync | undefined;
  #waiting: Write[] = [];
  #unsynced: Unsynced | null = null;
  // Whether SQLite syncs each commit.
  #isFull = true;
  // Why a sync has failed. The log must reach the database file before anything else is acknowledged.
  #syncFailure: { readonly error: unknown } | null = null;

  constructor(db: Database, { checkFiles = () => {}, participant = NOBODY, log }: WriteOptions = {}) {
    this.#db = db;
    this.#checkFiles = checkFiles;
    this.#participant = participant;
    this.#log = log;
  }

  // The work is synchronous and either does all of its part or throws; it is done again where others kept it from being
  // stored. `onCommitted` is called before anything else is written, with the time since the write was requested.
  // `bytes` is about how much it writes; `later` allows another thread to sync it.
  add<T>(
    work: () => T,
    onCommitted: (result: T, ms: number) => void = () => {},
    { bytes = 0, later = false }: { readonly bytes?: number; readonly later?: boolean } = {},
  ): Promise<T> {
    const asked = performance.now();
    return new Promise((resolve, fail) => {
      const done = (result: unknown) => {
        onCommitted(result as T, performance.now() - asked);
        resolve(result as T);
      };
      this.#waiting.push({ work, done, fail, bytes, later });
      if (this.#waiting.length === 1 && !this.#unsynced) setImmediate(() => this.#writeGroups());
    });
  }

  // Writes everything that is queued, without waiting for more.
  flush(): void {
    for (;;) {
      // The end of a sync may begin the next one.
      if (this.#unsynced) this.#log?.syncNow();
      else if (this.#waiting.length > 0) this.#write(this.#nextGroup(), { mayWait: false });
      else return;
    }
  }

  // Other work runs between two groups.
  #writeGroups(): void {
    if (this.#waiting.length === 0 || this.#unsynced) return;
    const group = this.#nextGroup();
    const isLast = this.#waiting.length === 0;
    this.#write(group, { mayWait: true });
    // Writes that were queued meanwhile have their own tick.
    if (!isLast && !this.#unsynced) setImmediate(() => this.#writeGroups());
  }

  #nextGroup(): Write[] {
    let bytes = 0;
    const beyond = this.#waiting.findIndex((write, index) => (bytes += write.bytes) > GROUP_BYTES && index > 0);
    return this.#waiting.splice(0, beyond < 0 ? this.#waiting.length : beyond);
  }

  // If a group cannot be written together, it is split in halves: an invalid write, or one that is too large for the
  // remaining space, must not fail the others.
  #write(group: readonly Write[], { mayWait }: { readonly mayWait: boolean }): void {
    const isLater = mayWait && this.#log !== undefined && group.every(({ later }) => later);
    try {
      if (this.#syncFailure) this.#checkpoint(this.#syncFailure);
      this.#syncEachCommit(!isLater);
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
      this.#write(group.slice(0, half), { mayWait: false });
      return this.#write(group.slice(half), { mayWait: false });
    }
    if (!isLater) return this.#acknowledge({ group, results });
    this.#unsynced = { group, results };
    this.#log?.sync((error) => this.#synced(error));
  }

  #synced(error: unknown): void {
    const unsynced = this.#unsynced;
    this.#unsynced = null;
    if (unsynced) this.#settle(unsynced, error);
    this.#writeGroups();
  }

  #settle(unsynced: Unsynced, error: unknown): void {
    try {
      if (error) this.#checkpoint({ error });
    } catch (failure) {
      this.#participant.notSynced();
      for (const { fail } of unsynced.group) fail(failure);
      return;
    }
    this.#acknowledge(unsynced);
  }

  #acknowledge({ group, results }: Unsynced): void {
    this.#participant.committed();
    // A commit into deleted files is not acknowledged.
    try {
      this.#checkFiles();
    } catch (error) {
      for (const { fail } of group) fail(error);
      return;
    }
    for (const [index, { done }] of group.entries()) done(results[index]);
  }

  #syncEachCommit(isFull: boolean): void {
    if (isFull === this.#isFull) return;
    this.#db.exec(`PRAGMA synchronous = ${isFull ? 'FULL' : 'NORMAL'}`);
    this.#isFull = isFull;
  }

  // After a failed sync, the kernel may have dropped what was to be written, and a second sync would succeed without
  // it. So everything in the log is written again, into the database file, and synced there. Then the log is emptied:
  // the part of it that did reach the disk has older versions of the same pages.
  #checkpoint(failure: { readonly error: unknown }): void {
    this.#syncFailure = failure;
    this.#db.exec('PRAGMA busy_timeout = 0');
    try {
      const { busy } = this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
      if (busy !== 0) throw failure.error;
      this.#log?.syncHere();
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    }
    this.#syncFailure = null;
  }
}
