// Commits writes in the order of the calls. All writes of one event-loop tick share a transaction, so that many
// concurrent runs cost the disk one write. A call resolves only after its part is on the disk: SQLite syncs each commit
// before it returns, but if a transaction has only writes of the kind `later`, another thread syncs it, and this thread
// continues with other work. Until then, no other transaction begins and no reader gets any of it.
import { BUSY_MS, PAGE_BYTES, rollback, type Database } from '../open-database.js';
import type { Checkpoints } from './checkpoints.js';
import type { LogSync } from './log-sync.js';
import type { CheckFiles } from './watch-files.js';

// About how many pages of the database a write changes, beside those that it fills. Small flushes share theirs.
const PAGES_EACH = 4;

// A larger transaction would block other work for too long: the rest is written in another one.
const GROUP_BYTES = 1024 * 1024;

interface Write {
  readonly bytes: number;
  readonly pages: number | undefined;
  readonly later: boolean;
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
  // Without it, SQLite moves the log into the database file by itself.
  readonly checkpoints?: Checkpoints | undefined;
}

interface SyncFailure {
  readonly error: unknown;
}

interface Committed {
  readonly group: readonly Write[];
  readonly results: readonly unknown[];
}

export class Writes {
  readonly #db: Database;
  readonly #checkFiles: CheckFiles;
  readonly #participant: Participant;
  readonly #log: LogSync | undefined;
  readonly #checkpoints: Checkpoints | undefined;
  #waiting: Write[] = [];
  // No transaction begins before this resolves: the last one is not on the disk yet, or the log must not grow.
  #pause: Promise<void> | null = null;
  // Whether SQLite syncs each commit.
  #isFull = true;
  // The log must reach the database file before anything else is acknowledged.
  #syncFailure: SyncFailure | null = null;

  constructor(db: Database, { checkFiles = () => {}, participant = NOBODY, log, checkpoints }: WriteOptions = {}) {
    this.#db = db;
    this.#checkFiles = checkFiles;
    this.#participant = participant;
    this.#log = log;
    this.#checkpoints = checkpoints;
  }

  // The work is synchronous and either does all of its part or throws; it is done again where others kept it from being
  // stored. `onCommitted` is called before anything else is written, with the time since the write was requested.
  // `bytes` is about how much it writes, and `pages` how many pages, if `bytes` does not tell. `later` allows another
  // thread to sync it. `alone`: no other write shares its transaction.
  add<T>(
    work: () => T,
    onCommitted: (result: T, ms: number) => void = () => {},
    { bytes = 0, pages, later = false, alone = false }: Partial<Omit<Write, 'work' | 'done' | 'fail'>> = {},
  ): Promise<T> {
    const asked = performance.now();
    return new Promise((resolve, fail) => {
      const done = (result: unknown) => {
        onCommitted(result as T, performance.now() - asked);
        resolve(result as T);
      };
      this.#waiting.push({ work, done, fail, bytes, pages, later, alone });
      if (this.#waiting.length === 1 && !this.#pause) setImmediate(() => this.#writeGroups());
    });
  }

  // Writes everything that is queued, without waiting for more: the database can be closed then.
  async drain(): Promise<void> {
    for (;;) {
      // The end of a sync may begin the next one.
      if (this.#pause) await this.#pause;
      else if (this.#waiting.length > 0) this.#write(this.#nextGroup(), { mayWait: false });
      else return;
    }
  }

  // Other work runs between two groups.
  #writeGroups(): void {
    if (this.#waiting.length === 0 || this.#pause) return;
    const moved = this.#checkpoints?.wait();
    if (moved) {
      this.#pause = moved.then(() => {
        this.#pause = null;
        this.#writeGroups();
      });
      return;
    }
    const group = this.#nextGroup();
    const isLast = this.#waiting.length === 0;
    this.#write(group, { mayWait: true });
    // Writes that were queued meanwhile have their own tick.
    if (!isLast && !this.#pause) setImmediate(() => this.#writeGroups());
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
  #write(group: readonly Write[], { mayWait }: { readonly mayWait: boolean }): void {
    const log = mayWait && group.every(({ later }) => later) ? this.#log : undefined;
    try {
      const failure = this.#checkpoint();
      if (failure) throw failure.error;
      this.#syncEachCommit(!log);
      this.#db.exec('BEGIN IMMEDIATE');
    } catch (error) {
      // Another process has locked the file, or the disk still fails: each part would wait for it in vain.
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
    const committed = { group, results };
    this.#checkpoints?.grew(log && group[0]?.pages === undefined ? PAGES_EACH : pagesOf(group));
    if (log) this.#pause = this.#sync(log, committed);
    else this.#acknowledge(committed);
  }

  async #sync(log: LogSync, committed: Committed): Promise<void> {
    try {
      await log.sync();
    } catch (error) {
      this.#syncFailure = { error };
    }
    const failure = this.#checkpoint();
    this.#pause = null;
    if (failure) {
      this.#participant.notSynced();
      for (const { fail } of committed.group) fail(failure.error);
    } else {
      this.#acknowledge(committed);
    }
    this.#writeGroups();
  }

  #acknowledge({ group, results }: Committed): void {
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
  // the part of it that did reach the disk has older versions of the same pages. Returns why this is not possible yet.
  #checkpoint(): SyncFailure | null {
    if (!this.#syncFailure) return null;
    try {
      this.#db.exec('PRAGMA busy_timeout = 0');
      const { busy } = this.#db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number };
      if (busy !== 0) return this.#syncFailure;
      this.#log?.syncHere();
      this.#syncFailure = null;
      return null;
    } catch (error) {
      return { error };
    } finally {
      this.#db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    }
  }
}

function pagesOf(group: readonly Write[]): number {
  return group.reduce((sum, { bytes, pages }) => sum + (pages ?? PAGES_EACH + bytes / PAGE_BYTES), 0);
}
