// Reads a run's event texts by seq and by time. A segment is read completely, decompressed and cut at its lines.
import { LineGatherer, TextPicker, type Segment } from '../cut-segments.js';
import { FIRST_DIGEST, nextDigest } from '../digest.js';
import {
  FIRST_SEGMENT,
  type Lines,
  type Protocol,
  type ReadRange,
  type SegmentRange,
  type StoredSegment,
} from '../store.js';
import type { Database } from './open-database.js';
import { PACKED, unpackBody, type PackedBody } from './pack-body.js';
import { recentSegments, type RecentView } from './recent/recent-flushes.js';
import { splitFlushes } from './recent/split-flushes.js';

// The columns as they are read: a damaged value may not be an exact number.
const inBounds = (column: string): string => `MAX(-1, MIN(${column}, ${Number.MAX_SAFE_INTEGER})) AS ${column}`;
const SEGMENT = `${inBounds('seq_from')}, ${inBounds('seq_to')}, body, ${PACKED}`;

export type ReadJournal = (runId: string, protocol: Protocol, range: ReadRange) => string[];

export function prepareRead(db: Database, recent: RecentView): ReadJournal {
  const select = db.prepare(`SELECT ${SEGMENT} FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to >= ? AND seq_from <= ? AND ts_to >= ? AND ts_from <= ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments
      WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY segments.seq_from`);
  return (runId, protocol, range) => {
    const { fromSeq = 1, toSeq = Number.MAX_SAFE_INTEGER, fromTs = 0, toTs = Number.MAX_SAFE_INTEGER } = range;
    const picker = new TextPicker(range);
    const flushes = recent.flushesOf(runId);
    let lastSeq = 0;
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
      if (!picker.add({ ...segment, body: unpackBody(segment) })) return picker.texts;
      lastSeq = segment.seq_to;
    }
    for (const piece of recentSegments(flushes, protocol, Math.max(lastSeq, fromSeq - 1))) {
      if (piece.seq_from > toSeq || piece.ts_from > toTs) break;
      if (piece.ts_to >= fromTs && !picker.add(piece)) break;
    }
    return picker.texts;
  };
}

export type ReadLines = (runId: string, protocol: Protocol, afterSeq: number, maxBytes: number) => Lines | null;

// A large segment is returned in several reads, so the last ones are kept up to this size, for several readers.
const KEEP_BYTES = 4 * 1024 * 1024;

export function prepareReadLines(db: Database, recent: RecentView): ReadLines {
  const select = db.prepare(`SELECT ${SEGMENT} FROM segments
    WHERE run_id = ? AND protocol = ? AND seq_to > ?
      AND seq_from >= (SELECT COALESCE(MAX(seq_from), 0) FROM segments
      WHERE run_id = ? AND protocol = ? AND seq_from <= ?)
    ORDER BY segments.seq_from`);
  // The least recently used comes first.
  const kept = new Map<string, Uint8Array>();
  let keptBytes = 0;
  const unpack = (runId: string, protocol: Protocol, segment: Segment & PackedBody): Uint8Array => {
    if (segment.packed === 0) return unpackBody(segment);
    // A segment that begins at the same event has become a longer one if segments were merged in between.
    const key = `${runId} ${protocol} ${segment.seq_from} ${segment.seq_to}`;
    const known = kept.get(key);
    const plain = known ?? unpackBody(segment);
    kept.delete(key);
    kept.set(key, plain);
    if (!known) keptBytes += plain.length;
    for (const [oldest, { length }] of kept) {
      if (keptBytes <= KEEP_BYTES) break;
      kept.delete(oldest);
      keptBytes -= length;
    }
    return plain;
  };
  return (runId, protocol, afterSeq, maxBytes) => {
    const gatherer = new LineGatherer(afterSeq, maxBytes);
    const flushes = recent.flushesOf(runId);
    for (const segment of select.iterate(runId, protocol, afterSeq, runId, protocol, afterSeq + 1) as Iterable<
      Segment & PackedBody
    >) {
      if (!gatherer.add({ ...segment, body: unpack(runId, protocol, segment) })) return gatherer.drain();
    }
    for (const piece of recentSegments(flushes, protocol, gatherer.lastSeq)) if (!gatherer.add(piece)) break;
    return gatherer.drain();
  };
}

export const RANGE = ['seq_from', 'seq_to', 'ts_from', 'ts_to'].map(inBounds).join(', ');

// Returns the stored rows, and the recent flushes after them.
export function listSegments({ db, recent }: JournalSource, runId: string, protocol: Protocol): SegmentRange[] {
  const flushes = recent.flushesOf(runId);
  const rows = db
    .prepare(`SELECT ${RANGE} FROM segments WHERE run_id = ? AND protocol = ? ORDER BY segments.seq_from`)
    .all(runId, protocol) as unknown as SegmentRange[];
  const lastSeq = rows.at(-1)?.seq_to ?? 0;
  const later = recentSegments(flushes, protocol, lastSeq);
  return [...rows, ...later.map(({ body: _body, ...range }) => range)];
}

// Where the events of a journal are.
export interface JournalSource {
  readonly db: Database;
  readonly recent: RecentView;
}

export interface SegmentPage {
  readonly afterSeq: number;
  readonly maxBytes: number;
}

export type FullRow = SegmentRange & PackedBody & { readonly flushes: string | null };

export const FULL = `${RANGE}, body, ${PACKED}, flushes`;

// Returns the journal flush by flush, as it was committed, whether or not the flushes were merged since.
export function readSegments(
  { db, recent }: JournalSource,
  runId: string,
  protocol: Protocol,
  { afterSeq, maxBytes }: SegmentPage,
): StoredSegment[] {
  const flushes = recent.flushesOf(runId);
  // The cursor may be within a merged segment. One statement, so that a merge in between changes nothing.
  const rows = db
    .prepare(`SELECT ${FULL} FROM segments WHERE run_id = ? AND protocol = ? AND segments.seq_from >= COALESCE(
      (SELECT MAX(seq_from) FROM segments WHERE run_id = ? AND protocol = ? AND seq_from <= ?), ?)
      ORDER BY segments.seq_from`)
    .iterate(runId, protocol, runId, protocol, afterSeq, afterSeq) as Iterable<FullRow>;
  const page: StoredSegment[] = [];
  let bytes = 0;
  for (const piece of flushesIn(rows, recentSegments(flushes, protocol), afterSeq)) {
    bytes += piece.body.length;
    if (bytes > maxBytes && page.length > 0) break;
    page.push(piece);
  }
  return page;
}

// The flushes whose first seq is after this one. Only the first row may begin before it.
function* flushesIn(
  rows: Iterable<FullRow>,
  recent: readonly StoredSegment[],
  afterSeq: number,
): Generator<StoredSegment> {
  let lastSeq = 0;
  for (const row of rows) {
    lastSeq = row.seq_to;
    if (row.seq_from <= afterSeq && (row.flushes === null || row.seq_to <= afterSeq)) continue;
    for (const piece of splitRow(row)) if (piece.seq_from > afterSeq) yield piece;
  }
  for (const piece of recent) if (piece.seq_to > lastSeq && piece.seq_from > afterSeq) yield piece;
}

export function recomputeDigest(source: JournalSource, runId: string): string {
  const flushes = source.recent.flushesOf(runId);
  const rows = source.db
    .prepare(`SELECT ${FULL} FROM segments WHERE run_id = ? AND protocol = 'rasp' ORDER BY segments.seq_from`)
    .iterate(runId) as Iterable<FullRow>;
  let digest = FIRST_DIGEST;
  for (const { body } of flushesIn(rows, recentSegments(flushes, 'rasp'), FIRST_SEGMENT))
    digest = nextDigest(digest, body);
  return digest;
}

// The flushes of a row.
export function splitRow({ flushes, body, packed, ...range }: FullRow): StoredSegment[] {
  return splitFlushes({ ...range, body: unpackBody({ body, packed }) }, flushes);
}
