// Reads a run's event texts by seq and by time. A segment is read whole, unpacked and cut at its lines.
import { LineGatherer, TextPicker, type Segment } from '../cut-segments.js';
import type { Lines, Protocol, ReadRange } from '../store.js';
import type { Database } from './open-database.js';
import { PACKED, unpackBody, type PackedBody } from './pack-body.js';

// The columns as they are read: damaged ones may be more than a number can be.
export const inBounds = (column: string): string => `MAX(-1, MIN(${column}, ${Number.MAX_SAFE_INTEGER})) AS ${column}`;
const SEGMENT = `${inBounds('seq_from')}, ${inBounds('seq_to')}, body, ${PACKED}`;

export type ReadJournal = (runId: string, protocol: Protocol, range: ReadRange) => string[];

export function prepareRead(db: Database): ReadJournal {
  const select = db.prepare(`SELECT ${SEGMENT} FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to >= ? AND seq_from <= ? AND ts_to >= ? AND ts_from <= ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments
      WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY segments.seq_from`);
  return (runId, protocol, range) => {
    const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER, fromTs = 0, toTs = Number.MAX_SAFE_INTEGER } = range;
    const picker = new TextPicker(range);
    for (const segment of select.iterate(
      runId,
      protocol,
      fromSeq,
      toSeq,
      fromTs,
      toTs,
      runId,
      protocol,
      fromSeq,
    ) as Iterable<Segment & PackedBody>) {
      if (!picker.add({ ...segment, body: unpackBody(segment) })) break;
    }
    return picker.found;
  };
}

export type ReadLines = (runId: string, protocol: Protocol, afterSeq: number, maxBytes: number) => Lines | null;

// A reader takes a large segment in several reads: so much of the last one is kept.
const KEEP_BYTES = 4 * 1024 * 1024;

export function prepareReadLines(db: Database): ReadLines {
  const select = db.prepare(`SELECT ${SEGMENT} FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to > ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments
      WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY segments.seq_from`);
  let last: { readonly key: string; readonly plain: Uint8Array } | null = null;
  const unpack = (runId: string, protocol: Protocol, segment: Segment & PackedBody): Uint8Array => {
    if (segment.packed === 0) return unpackBody(segment);
    const key = `${runId} ${protocol} ${segment.seq_from}`;
    if (last?.key === key) return last.plain;
    const plain = unpackBody(segment);
    last = plain.length <= KEEP_BYTES ? { key, plain } : null;
    return plain;
  };
  return (runId, protocol, afterSeq, maxBytes) => {
    const gatherer = new LineGatherer(afterSeq, maxBytes);
    for (const segment of select.iterate(runId, protocol, afterSeq, runId, protocol, afterSeq + 1) as Iterable<
      Segment & PackedBody
    >) {
      if (!gatherer.add({ ...segment, body: unpack(runId, protocol, segment) })) break;
    }
    return gatherer.take();
  };
}
