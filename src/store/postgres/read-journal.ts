// Reads a run's event texts by seq and by time. Segments are read completely, several at a time, and cut at their
// lines.
import { LineGatherer, TextPicker, toBuffer, type Segment } from '../cut-segments.js';
import type { Lines, Protocol, ReadRange, SegmentRange, StoredSegment } from '../store.js';
import type { Reader } from './connection/database.js';

// The maximum number of segments, and about how many bytes, per query.
const PAGE_ROWS = 64;
const PAGE_BYTES = 1024 * 1024;

const PAGE = `SELECT seq_from, seq_to, body, total FROM (
  SELECT seq_from, seq_to, body, count(*) OVER () AS total,
    sum(octet_length(body)) OVER (ORDER BY seq_from) - octet_length(body) AS before
  FROM (SELECT seq_from, seq_to, body FROM parley.segments
    WHERE run_id = $1 AND protocol = $2 AND seq_to >= $3::bigint AND seq_from <= $4::bigint AND ts_to >= $5::bigint
    AND ts_from <= $6::bigint
      AND seq_from >= COALESCE((SELECT max(seq_from) FROM parley.segments
      WHERE run_id = $1 AND protocol = $2 AND seq_from <= $3::bigint), 0)
    ORDER BY seq_from LIMIT ${PAGE_ROWS}) AS page
) AS sized WHERE before < $7::bigint ORDER BY seq_from`;

// Segments that may hold a part of the range, in order.
export async function* readSegments(
  db: Reader,
  runId: string,
  protocol: Protocol,
  range: Omit<ReadRange, 'limit'>,
  bytes = PAGE_BYTES,
): AsyncGenerator<Segment> {
  const { toSeq = Number.MAX_SAFE_INTEGER, fromTs = 0, toTs = Number.MAX_SAFE_INTEGER } = range;
  let from = range.fromSeq ?? 1;
  for (;;) {
    const page = await db.read<Segment & { total: number }>({
      name: 'segments',
      text: PAGE,
      values: [runId, protocol, from, toSeq, fromTs, toTs, bytes],
    });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || (page.length === last.total && last.total < PAGE_ROWS)) return;
    from = last.seq_to + 1;
  }
}

export async function readTexts(db: Reader, runId: string, protocol: Protocol, range: ReadRange): Promise<string[]> {
  const picker = new TextPicker(range);
  for await (const segment of readSegments(db, runId, protocol, range)) {
    if (!picker.add(segment)) break;
  }
  return picker.texts;
}

export async function readLines(
  db: Reader,
  runId: string,
  protocol: Protocol,
  afterSeq: number,
  maxBytes: number,
): Promise<Lines | null> {
  const gatherer = new LineGatherer(afterSeq, maxBytes);
  for await (const segment of readSegments(
    db,
    runId,
    protocol,
    { fromSeq: afterSeq + 1 },
    Math.min(maxBytes, PAGE_BYTES),
  )) {
    if (!gatherer.add(segment)) break;
  }
  return gatherer.drain();
}

const STORED = `SELECT seq_from, seq_to, ts_from, ts_to, body FROM (
  SELECT *, sum(octet_length(body)) OVER (ORDER BY seq_from) AS bytes, row_number() OVER (ORDER BY seq_from) AS place
  FROM (SELECT seq_from, seq_to, ts_from, ts_to, body FROM parley.segments
    WHERE run_id = $1 AND protocol = $2 AND seq_from > $3::bigint ORDER BY seq_from LIMIT ${PAGE_ROWS}) AS page
) AS sized WHERE bytes <= $4::bigint OR place = 1 ORDER BY seq_from`;

export async function readStoredSegments(
  db: Reader,
  runId: string,
  protocol: Protocol,
  { afterSeq, maxBytes }: { readonly afterSeq: number; readonly maxBytes: number },
): Promise<StoredSegment[]> {
  const rows = await db.read<SegmentRange & { readonly body: Uint8Array }>({
    name: 'stored-segments',
    text: STORED,
    values: [runId, protocol, afterSeq, maxBytes],
  });
  return rows.map(({ seq_from, seq_to, ts_from, ts_to, body }) => ({
    seq_from,
    seq_to,
    ts_from,
    ts_to,
    body: toBuffer(body),
  }));
}

export async function listSegments(db: Reader, runId: string, protocol: Protocol): Promise<SegmentRange[]> {
  return db.read<SegmentRange>({
    name: 'segment-ranges',
    text:
      'SELECT seq_from, seq_to, ts_from, ts_to FROM parley.segments WHERE run_id = $1 AND protocol = $2 ORDER ' +
      'BY seq_from',
    values: [runId, protocol],
  });
}
