// The flushes that are in groups and not yet in the segments of their runs, in memory: for readers, and for the writer
// that merges them. Nothing here is the only copy: a flush stays in its row of event_groups until it is in a segment.
import { toBuffer } from '../../cut-segments.js';
import type { JournalHeads, Protocol, StoredSegment } from '../../store.js';
import type { RecentFlush } from './group-format.js';

// A recent flush and the group that holds it.
export interface GroupedFlush extends RecentFlush {
  readonly group: number;
}

interface Tail {
  readonly flushes: GroupedFlush[];
  bytes: number;
}

// Recent flushes of this size make one good segment.
export const MOST_RUN_BYTES = 512 * 1024;

export class RecentFlushes {
  // The run whose recent flushes are the oldest comes first.
  readonly #tails = new Map<string, Tail>();
  // How many flushes of each group are here, and the size of the group's row.
  readonly #groups = new Map<number, { count: number; readonly bytes: number }>();
  // The runs whose recent flushes have reached MOST_RUN_BYTES.
  readonly #large = new Set<string>();
  #bytes = 0;
  #groupBytes = 0;

  // The size of all recent flushes.
  get bytes(): number {
    return this.#bytes;
  }

  // The size of the rows that hold them. A row is kept until all its flushes are merged.
  get groupBytes(): number {
    return this.#groupBytes;
  }

  // How many groups they are in.
  get groups(): number {
    return this.#groups.size;
  }

  get hasLargeRun(): boolean {
    return this.#large.size > 0;
  }

  flushesOf(runId: string): readonly GroupedFlush[] {
    return this.#tails.get(runId)?.flushes ?? [];
  }

  bytesOf(runId: string): number {
    return this.#tails.get(runId)?.bytes ?? 0;
  }

  newestOf(runId: string): GroupedFlush | undefined {
    return this.#tails.get(runId)?.flushes.at(-1);
  }

  // The runs with recent flushes: the one with the oldest flushes comes first.
  *runs(): Generator<{ readonly runId: string; readonly bytes: number; readonly oldestGroup: number }> {
    for (const [runId, { flushes, bytes }] of this.#tails)
      yield { runId, bytes, oldestGroup: flushes[0]?.group ?? Infinity };
  }

  // How many flushes of this group are here.
  countIn(group: number): number {
    return this.#groups.get(group)?.count ?? 0;
  }

  // The flush continues those of its run that are here. `groupBytes` is the size of the row of its group.
  add(flush: GroupedFlush, groupBytes: number): void {
    const tail = this.#tails.get(flush.runId) ?? { flushes: [], bytes: 0 };
    this.#tails.set(flush.runId, tail);
    tail.flushes.push(flush);
    tail.bytes += sizeOf(flush);
    if (tail.bytes >= MOST_RUN_BYTES) this.#large.add(flush.runId);
    this.#bytes += sizeOf(flush);
    const group = this.#groups.get(flush.group) ?? { count: 0, bytes: groupBytes };
    if (group.count === 0) this.#groupBytes += groupBytes;
    group.count += 1;
    this.#groups.set(flush.group, group);
  }

  // Forgets the flushes of a run up to this RASP event: they are in segments.
  drop(runId: string, upTo = Infinity): void {
    const tail = this.#tails.get(runId);
    if (!tail) return;
    const kept = tail.flushes.findIndex(({ heads }) => heads.rasp_seq > upTo);
    for (const flush of tail.flushes.splice(0, kept < 0 ? tail.flushes.length : kept)) {
      tail.bytes -= sizeOf(flush);
      this.#bytes -= sizeOf(flush);
      this.#leaveGroup(flush.group);
    }
    if (tail.bytes < MOST_RUN_BYTES) this.#large.delete(runId);
    if (kept < 0) this.#tails.delete(runId);
  }

  #leaveGroup(number: number): void {
    const group = this.#groups.get(number);
    if (!group) return;
    group.count -= 1;
    if (group.count > 0) return;
    this.#groups.delete(number);
    this.#groupBytes -= group.bytes;
  }

  // Forgets the flushes of earlier groups.
  dropGroupsBefore(group: number): void {
    for (const [runId, { flushes }] of this.#tails) {
      const last = flushes.findLast((flush) => flush.group < group);
      if (last) this.drop(runId, last.heads.rasp_seq);
    }
  }
}

export function sizeOf({ journal: { rasp, fcmp } }: RecentFlush): number {
  return rasp.bytes.length + (fcmp?.bytes.length ?? 0);
}

// What readers of a run need. In a process beside the writer, `refresh` finds the flushes that are new. Call it before
// reading rows of a run: a flush that is merged in between is then found twice instead of not at all.
export interface RecentView {
  refresh(): void;
  // The flushes of a run that may not be in its segments yet, oldest first. Refreshes by itself.
  flushesOf(runId: string): readonly RecentFlush[];
  // The last of them as of the last refresh. Its heads may be in the row of the run already.
  newestOf(runId: string): RecentFlush | undefined;
}

// The recent flushes of one protocol after an event, in the form of segments.
export function recentSegments(flushes: readonly RecentFlush[], protocol: Protocol, afterSeq = 0): StoredSegment[] {
  const head = protocol === 'rasp' ? 'rasp_seq' : 'fcmp_seq';
  const from = flushes.findIndex(({ heads }) => heads[head] > afterSeq);
  return from < 0 ? [] : flushes.slice(from).flatMap((flush) => toSegment(flush, protocol));
}

function toSegment({ journal: { rasp, fcmp, firstTs, lastTs } }: RecentFlush, protocol: Protocol): StoredSegment[] {
  const lines = protocol === 'rasp' ? { ...rasp, firstTs } : fcmp;
  if (!lines) return [];
  const { firstSeq: from, lastSeq: to, firstTs: first, bytes } = lines;
  return [{ seq_from: from, seq_to: to, ts_from: first, ts_to: lastTs, body: toBuffer(bytes) }];
}

type RowWithHeads = JournalHeads & { readonly run_id: string; readonly updated_at: number };

// The row of a run as if its recent flushes were merged. A row that is not behind them is damaged, or newer.
export function withRecentHeads<Row extends RowWithHeads>(row: Row, newest: RecentFlush | undefined): Row {
  const heads = newest?.heads;
  const isBehind = heads && row.rasp_seq < heads.rasp_seq && row.fcmp_seq <= heads.fcmp_seq && row.ts <= heads.ts;
  return isBehind ? { ...row, ...heads, updated_at: newest.now } : row;
}
