// Stores small flushes in groups: all small flushes of one transaction are one row of event_groups, whatever the number
// of runs, instead of a segment and a changed row for each run. They are merged into the segments of their run when
// anything else of the run changes, or when there are too many recent flushes.
//
// Calls within a transaction are staged until it ends: committed() applies them to the memory of this process,
// rolledBack() discards them.
import { extendHeads } from '../../extend-heads.js';
import type { AppendOutcome, JournalFlush, JournalHeads, RunAppend } from '../../store.js';
import type { RunState } from '../../../run/statechart.js';
import type { Database, Statement } from '../open-database.js';
import { encodeGroup, type RecentFlush } from './group-format.js';
import { prepareMerge, type MergeFlushes } from './merge-flushes.js';
import type { LoadedGroups } from './load-groups.js';
import { MOST_RUN_BYTES, sizeOf, type RecentFlushes, type RecentView } from './recent-flushes.js';

// The limits for all runs, for the flushes and for the rows that hold them. They bound the memory of this process, and
// how much a start and other processes must read.
const MOST_BYTES = 16 * 1024 * 1024;
const MOST_GROUPS = 1024;
// When a limit is exceeded, the oldest flushes are merged until this part of it is left.
const KEPT_PART = 0.75;
// Merging much more in one transaction would block other work for too long. If more was added since the last merge, as
// much as that is merged, so that the limits hold.
export const MERGED_AT_ONCE = 256 * 1024;

// A flush of this size is compressed and becomes a segment of its own at once.
const LEAST_DIRECT_BYTES = 32 * 1024;

export function isSmall({ rasp, fcmp }: JournalFlush): boolean {
  return rasp.bytes.length < LEAST_DIRECT_BYTES && (fcmp?.bytes.length ?? 0) < LEAST_DIRECT_BYTES;
}

interface Staged {
  flushes: RecentFlush[];
  // Whether the flushes of earlier transactions are merged in this one.
  isMerged: boolean;
}

// Events that change no row of their run.
export type SmallAppend = Pick<RunAppend, 'run_id' | 'expect' | 'now'> & {
  readonly status: RunState;
  readonly lines: JournalFlush;
};

interface RunRow {
  readonly status: RunState;
  readonly epoch: number;
  readonly heads: JournalHeads;
}

export class GroupWriter implements RecentView {
  readonly #recent: RecentFlushes;
  // The rows of runs with flushes that are not merged: every change of a row merges them first.
  readonly #rows = new Map<string, RunRow>();
  readonly #staged = new Map<string, Staged>();
  readonly #merge: MergeFlushes;
  readonly #select: Statement;
  readonly #insert: Statement;
  readonly #delete: Statement;
  // Numbers are never used again, because other processes read the groups after the last one they know: the newest
  // group is kept until there is a newer one.
  #newestGroup: number;
  #newestBytes = 0;
  #emptyGroups: ReadonlySet<number>;
  readonly #damagedGroups: ReadonlySet<number>;
  // After the current transaction.
  #nextEmpty: ReadonlySet<number> = new Set();
  // The size of the flushes since the last merge.
  #added = 0;

  constructor(db: Database, { recent, empty, newest, damaged }: LoadedGroups) {
    this.#recent = recent;
    this.#newestGroup = newest;
    this.#emptyGroups = new Set(empty);
    this.#damagedGroups = new Set(damaged.keys());
    this.#merge = prepareMerge(db);
    this.#select = db.prepare('SELECT status, epoch, rasp_seq, fcmp_seq, ts, digest FROM runs WHERE run_id = ?');
    this.#insert = db.prepare('INSERT INTO event_groups (group_id, body, packed) VALUES (?, ?, ?)');
    this.#delete = db.prepare('DELETE FROM event_groups WHERE group_id = ?');
  }

  refresh(): void {
    // The memory of the writer is always up to date.
  }

  // The size of the flushes that a change of the run merges.
  bytesOf(runId: string): number {
    return this.#recent.bytesOf(runId);
  }

  flushesOf(runId: string): readonly RecentFlush[] {
    return this.#recent.flushesOf(runId);
  }

  newestOf(runId: string): RecentFlush | undefined {
    return this.#recent.newestOf(runId);
  }

  // Within a transaction.
  append({ run_id: runId, expect, status, now, lines }: SmallAppend): AppendOutcome {
    const run = this.#rows.get(runId) ?? this.#loadRow(runId);
    if (!run) return { committed: false, reason: 'unknown_run' };
    if (run.epoch !== expect.epoch) return { committed: false, reason: 'epoch' };
    if (run.status !== status) return { committed: false, reason: 'status' };
    const head = this.#newest(runId)?.heads ?? run.heads;
    if (head.rasp_seq !== expect.rasp_seq) return { committed: false, reason: 'seq' };
    const heads = extendHeads(head, lines);
    this.#rows.set(runId, run);
    this.#stage(runId).flushes.push({ runId, now, journal: lines, heads });
    return { committed: true, heads };
  }

  #loadRow(runId: string): RunRow | null {
    const row = this.#select.get(runId) as (Omit<RunRow, 'heads'> & JournalHeads) | undefined;
    if (!row) return null;
    const { status, epoch, ...heads } = row;
    return { status, epoch, heads };
  }

  // Within a transaction, before any row of the run changes.
  merge(runId: string): void {
    this.#rows.delete(runId);
    const flushes = this.#unmerged(runId);
    if (flushes.length === 0) return;
    this.#merge(flushes);
    Object.assign(this.#stage(runId), { flushes: [], isMerged: true });
  }

  // Whether mergeOldest() has work to do.
  get isFull(): boolean {
    const { bytes, groupBytes, groups, hasLargeRun } = this.#recent;
    return Math.max(bytes, groupBytes) > MOST_BYTES || groups > MOST_GROUPS || hasLargeRun;
  }

  // Within a transaction. Merges a part, so that other work can run in between.
  mergeOldest(): void {
    let merged = 0;
    const most = Math.max(MERGED_AT_ONCE, this.#added);
    this.#added = 0;
    for (const { runId, bytes, oldestGroup } of this.#recent.runs()) {
      const isOld = oldestGroup < this.#newestGroup - KEPT_PART * MOST_GROUPS;
      const isTooMuch = Math.max(this.#recent.bytes - merged, this.#recent.groupBytes) > KEPT_PART * MOST_BYTES;
      if (!isOld && !isTooMuch && bytes < MOST_RUN_BYTES) continue;
      this.merge(runId);
      merged += bytes;
      if (merged >= most) return;
    }
  }

  mergeAll(): void {
    for (const { runId } of this.#recent.runs()) this.merge(runId);
  }

  // At the end of a transaction: stores the staged flushes, and deletes groups whose flushes are all merged.
  store(): void {
    this.#nextEmpty = this.#emptyGroups;
    if (this.#staged.size === 0) return;
    const flushes = [...this.#staged.values()].flatMap((staged) => staged.flushes);
    const newest = this.#newestGroup + Number(flushes.length > 0);
    if (flushes.length > 0) {
      const { body, packed } = encodeGroup(flushes);
      this.#newestBytes = body.length;
      this.#insert.run(newest, body, packed);
    }
    const empty = [...this.#emptyGroups, ...this.#groupsEmptied()].filter((group) => !this.#damagedGroups.has(group));
    for (const group of empty) if (group !== newest) this.#delete.run(group);
    this.#nextEmpty = new Set(empty.filter((group) => group === newest));
  }

  #groupsEmptied(): number[] {
    const merged = new Map<number, number>();
    for (const [runId, { isMerged }] of this.#staged)
      for (const { group } of isMerged ? this.#recent.flushesOf(runId) : [])
        merged.set(group, (merged.get(group) ?? 0) + 1);
    return [...merged].filter(([group, count]) => count === this.#recent.countIn(group)).map(([group]) => group);
  }

  committed(): void {
    const isNew = [...this.#staged.values()].some(({ flushes }) => flushes.length > 0);
    if (isNew) this.#newestGroup += 1;
    for (const [runId, { flushes, isMerged }] of this.#staged) {
      if (isMerged) this.#recent.drop(runId);
      for (const flush of flushes) {
        this.#recent.add({ ...flush, group: this.#newestGroup }, this.#newestBytes);
        this.#added += sizeOf(flush);
      }
    }
    this.#emptyGroups = this.#nextEmpty;
    this.#staged.clear();
  }

  rolledBack(): void {
    this.#staged.clear();
    // They may be rows that the transaction had changed.
    this.#rows.clear();
  }

  #newest(runId: string): RecentFlush | undefined {
    const staged = this.#staged.get(runId);
    return staged?.flushes.at(-1) ?? (staged?.isMerged ? undefined : this.#recent.newestOf(runId));
  }

  #unmerged(runId: string): readonly RecentFlush[] {
    const staged = this.#staged.get(runId);
    if (!staged) return this.#recent.flushesOf(runId);
    return staged.isMerged ? staged.flushes : [...this.#recent.flushesOf(runId), ...staged.flushes];
  }

  #stage(runId: string): Staged {
    const staged = this.#staged.get(runId) ?? { flushes: [], isMerged: false };
    this.#staged.set(runId, staged);
    return staged;
  }
}
