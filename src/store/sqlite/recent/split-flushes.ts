// Splits a merged segment into the flushes it was made of. Digests and cursors refer to flushes, so they do not depend
// on whether and when flushes were merged.
import { parseJson } from '../../../kernel/json.js';
import { damageText } from '../../../kernel/damage-texts.js';
import { DamagedDataError } from '../../../kernel/stored-json.js';
import { toBuffer } from '../../cut-segments.js';
import { isCount } from '../../stored-shapes.js';
import type { SegmentRange, StoredSegment } from '../../store.js';

// Expects the unpacked body. Throws a DamagedDataError if the counts do not fit the segment.
export function splitFlushes(
  segment: SegmentRange & { readonly body: Uint8Array },
  flushes: string | null,
): StoredSegment[] {
  const body = toBuffer(segment.body);
  if (flushes === null) return [{ ...segment, body }];
  const counts = parseJson(flushes);
  const { seq_from: first, seq_to: last } = segment;
  if (!isCounts(counts) || sum(counts) !== last - first + 1)
    throw new DamagedDataError(damageText('damage.flush_ends', { from: first, to: last }));
  let seq = first;
  let at = 0;
  return counts.map((count, index) => {
    const from = at;
    for (let line = 0; line < count && at < body.length; line += 1) at = body.indexOf(0x0a, at) + 1 || body.length;
    seq += count;
    // Bytes behind the last line belong to the last flush, so that nothing of a damaged body is left out.
    const piece = body.subarray(from, index === counts.length - 1 ? body.length : at);
    return { seq_from: seq - count, seq_to: seq - 1, ts_from: segment.ts_from, ts_to: segment.ts_to, body: piece };
  });
}

function isCounts(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 1 && value.every((count) => isCount(count) && count > 0);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
