// Splits a merged segment into the flushes it was made of. Digests and cursors refer to flushes, so they do not depend
// on whether and when flushes were merged.
import { parseJson } from '../../../kernel/json.js';
import { toBuffer } from '../../cut-segments.js';
import { isCount } from '../../stored-shapes.js';
import type { SegmentRange, StoredSegment } from '../../store.js';

// Expects the unpacked body. If the counts are damaged, the segment is one piece, and its digest does not match.
export function splitFlushes(
  segment: SegmentRange & { readonly body: Uint8Array },
  flushes: string | null,
): StoredSegment[] {
  const body = toBuffer(segment.body);
  const counts = flushes === null ? null : parseJson(flushes);
  const lines = segment.seq_to - segment.seq_from + 1;
  if (!isCounts(counts) || counts.reduce((sum, count) => sum + count, 0) !== lines) return [{ ...segment, body }];
  let seq = segment.seq_from;
  let at = 0;
  return counts.map((count, index) => {
    const from = at;
    for (let line = 0; line < count && at < body.length; line += 1) at = body.indexOf(0x0a, at) + 1 || body.length;
    // Bytes behind the last line belong to the last piece, so that nothing of a damaged body is left out.
    const piece = body.subarray(from, index === counts.length - 1 ? body.length : at);
    seq += count;
    return { ...segment, seq_from: seq - count, seq_to: seq - 1, body: piece };
  });
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((count) => isCount(count) && count > 0);
}
