// Reads a run's event texts by seq and by time. A segment is read completely, decompressed and cut at its lines.
import { LineGatherer, TextPicker, toBuffer, type Segment } from '../cut-segments.js';
import { FIRST_DIGEST, nextDigest } from '../digest.js';
import type { Lines, Protocol, ReadRange, SegmentRange, StoredSegment } from '../store.js';
import type { Database } from './open-database.js';
import { PACKED, unpackBody, type PackedBody } from './pack-body.js';

// The columns as they are read: a damaged value may not be an exact number.
const inBounds = (column: string): string => `MAX(-1, MIN(${column}, ${Number.MAX_SAFE_INTEGER})) AS ${column}`;
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
    return picker.texts;
  };
}

export type ReadLines = (runId: string, protocol: Protocol, afterSeq: number, maxBytes: number) => Lines | null;

// A large segment is returned in several reads, so the last one is kept up to this size.
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
    return gatherer.drain();
  };
}

const RANGE = ['seq_from', 'seq_to', 'ts_from', 'ts_to'].map(inBounds).join(', ');

export function listSegments(db: Database, runId: string, protocol: Protocol): SegmentRange[] {
  return db
    .prepare(`SELECT ${RANGE} FROM segments WHERE run_id = ? AND protocol = ? ORDER BY segments.seq_from`)
    .all(runId, protocol) as unknown as SegmentRange[];
}

export interface SegmentPage {
  readonly afterSeq: number;
  readonly maxBytes: number;
}

export function readSegments(
  db: Database,
  runId: string,
  protocol: Protocol,
  { afterSeq, maxBytes }: SegmentPage,
): StoredSegment[] {
  const rows = db
    .prepare(
      `SELECT ${RANGE}, body, ${PACKED} FROM segments
        WHERE run_id = ? AND protocol = ? AND segments.seq_from > ? ORDER BY segments.seq_from`,
    )
    .iterate(runId, protocol, afterSeq) as Iterable<SegmentRange & PackedBody>;
  const segments: StoredSegment[] = [];
  let bytes = 0;
  for (const { seq_from, seq_to, ts_from, ts_to, ...packed } of rows) {
    const body = toBuffer(unpackBody(packed));
    bytes += body.length;
    if (bytes > maxBytes && segments.length > 0) break;
    segments.push({ seq_from, seq_to, ts_from, ts_to, body });
  }
  return segments;
}

export function recomputeDigest(db: Database, runId: string): string {
  const bodies = db
    .prepare(`SELECT body, ${PACKED} FROM segments WHERE run_id = ? AND protocol = 'rasp' ORDER BY seq_from`)
    .iterate(runId) as Iterable<PackedBody>;
  let digest = FIRST_DIGEST;
  for (const body of bodies) digest = nextDigest(digest, unpackBody(body));
  return digest;
}
