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
  // How many flushes of each group are here.
  readonly #groups = new Map<number, number>();
  // The runs whose recent flushes have reached MOST_RUN_BYTES.
  readonly #large = new Set<string>();
  #bytes = 0;

  // The size of all recent flushes.
  get bytes(): number {
    return this.#bytes;
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
    return this.#groups.get(group) ?? 0;
  }

  // The flush continues those of its run that are here.
  add(flush: GroupedFlush): void {
    const tail = this.#tails.get(flush.runId) ?? { flushes: [], bytes: 0 };
    this.#tails.set(flush.runId, tail);
    tail.flushes.push(flush);
    tail.bytes += sizeOf(flush);
    if (tail.bytes >= MOST_RUN_BYTES) this.#large.add(flush.runId);
    this.#bytes += sizeOf(flush);
    this.#groups.set(flush.group, this.countIn(flush.group) + 1);
  }

  // Forgets the flushes of a run up to this RASP event: they are in segments.
  drop(runId: string, upTo = Infinity): void {
    const tail = this.#tails.get(runId);
    if (!tail) return;
    const kept = tail.flushes.findIndex(({ heads }) => heads.rasp_seq > upTo);
    for (const flush of tail.flushes.splice(0, kept < 0 ? tail.flushes.length : kept)) {
      tail.bytes -= sizeOf(flush);
      this.#bytes -= sizeOf(flush);
      const left = this.countIn(flush.group) - 1;
      if (left > 0) this.#groups.set(flush.group, left);
      else this.#groups.delete(flush.group);
    }
    if (tail.bytes < MOST_RUN_BYTES) this.#large.delete(runId);
    if (kept < 0) this.#tails.delete(runId);
  }

  // Forgets the flushes of earlier groups.
  dropGroupsBefore(group: number): void {
    for (const [runId, { flushes }] of this.#tails) {
      const last = flushes.findLast((flush) => flush.group < group);
      if (last) this.drop(runId, last.heads.rasp_seq);
    }
  }
}

function sizeOf({ journal: { rasp, fcmp } }: RecentFlush): number {
  return rasp.bytes.length + (fcmp?.bytes.length ?? 0);
}

// What readers of a run need.
export interface RecentView {
  // The flushes of a run that may not be in its segments yet, oldest first. Call it before reading rows of the run: a
  // flush that is merged in between is then found twice instead of not at all.
  flushesOf(runId: string): readonly RecentFlush[];
  // The last of them, without the order above: its heads may be in the row of the run already.
  newestOf(runId: string): RecentFlush | undefined;
}

// The recent flushes of one protocol, in the form of segments.
export function recentSegments(flushes: readonly RecentFlush[], protocol: Protocol): StoredSegment[] {
  return flushes.flatMap(({ journal: { rasp, fcmp, firstTs, lastTs } }) => {
    const lines = protocol === 'rasp' ? { ...rasp, firstTs } : fcmp;
    if (!lines) return [];
    const { firstSeq: from, lastSeq: to, firstTs: first, bytes } = lines;
    return [{ seq_from: from, seq_to: to, ts_from: first, ts_to: lastTs, body: toBuffer(bytes) }];
  });
}

type RowWithHeads = JournalHeads & { readonly run_id: string; readonly updated_at: number };

// The row of a run as if its recent flushes were merged.
export function withRecentHeads<Row extends RowWithHeads>(row: Row, newest: RecentFlush | undefined): Row {
  return newest && newest.heads.rasp_seq > row.rasp_seq ? { ...row, ...newest.heads, updated_at: newest.now } : row;
}
