// Writes recent flushes into the segments of their run. A segment remembers where each flush ends, because the digest
// of a journal is chained flush by flush.
import type { Protocol, SegmentRange, StoredSegment } from '../../store.js';
import type { Database } from '../open-database.js';
import { packBody, type PackedBody, type PackOptions } from '../pack-body.js';
import type { RecentFlush } from './group-format.js';
import { recentSegments } from './recent-flushes.js';

// A larger segment would make a reader of one event read too much.
export const MOST_SEGMENT_BYTES = 512 * 1024;

export type MergeFlushes = (flushes: readonly RecentFlush[]) => void;

// Call it only inside a transaction. The flushes are all of one run, and continue its segments.
export function prepareMerge(db: Database): MergeFlushes {
  const insert = prepareInsert(db);
  const update = db.prepare(
    'UPDATE runs SET rasp_seq = ?, fcmp_seq = ?, ts = ?, digest = ?, updated_at = ? WHERE run_id = ?',
  );
  const add = (runId: string, protocol: Protocol, flushes: readonly RecentFlush[]): void => {
    const merged = mergeSegments(recentSegments(flushes, protocol));
    if (merged) insert(runId, protocol, merged);
  };
  return (flushes) => {
    const last = flushes.at(-1);
    if (!last) return;
    for (const part of cutParts(flushes)) {
      add(last.runId, 'rasp', part);
      add(last.runId, 'fcmp', part);
    }
    const { rasp_seq: raspSeq, fcmp_seq: fcmpSeq, ts, digest } = last.heads;
    update.run(raspSeq, fcmpSeq, ts, digest, last.now, last.runId);
  };
}

function* cutParts(flushes: readonly RecentFlush[]): Generator<readonly RecentFlush[]> {
  let part: RecentFlush[] = [];
  let bytes = 0;
  for (const flush of flushes) {
    bytes += flush.journal.rasp.bytes.length;
    if (bytes > MOST_SEGMENT_BYTES && part.length > 0) {
      yield part;
      part = [];
      bytes = flush.journal.rasp.bytes.length;
    }
    part.push(flush);
  }
  if (part.length > 0) yield part;
}

type MergedSegment = SegmentRange & PackedBody & { readonly flushes: string | null };

// One segment for flushes that follow each other; null if there are none.
export function mergeSegments(parts: readonly StoredSegment[], options?: PackOptions): MergedSegment | null {
  const [first] = parts;
  const last = parts.at(-1);
  if (!first || !last) return null;
  const counts = parts.map(({ seq_from: from, seq_to: to }) => to - from + 1);
  return {
    seq_from: first.seq_from,
    seq_to: last.seq_to,
    ts_from: Math.min(...parts.map(({ ts_from: ts }) => ts)),
    ts_to: Math.max(...parts.map(({ ts_to: ts }) => ts)),
    ...packBody(Buffer.concat(parts.map((part) => part.body)), options),
    flushes: counts.length > 1 ? JSON.stringify(counts) : null,
  };
}

export function prepareInsert(db: Database): (runId: string, protocol: Protocol, segment: MergedSegment) => void {
  const insert = db.prepare(`INSERT INTO segments
    (run_id, protocol, seq_from, seq_to, ts_from, ts_to, body, packed, flushes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`);
  return (runId, protocol, { seq_from: seqFrom, seq_to: seqTo, ts_from: tsFrom, ts_to: tsTo, body, packed, flushes }) =>
    void insert.run(runId, protocol, seqFrom, seqTo, tsFrom, tsTo, body, packed, flushes);
}
