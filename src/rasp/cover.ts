// Do the events account for every byte? Invariant: the ranges of a stream cover it from its begin to its end without a
// hole, and two of them are equal or disjoint.
import type { RaspEvent, StreamName } from './event.js';

export interface Cover {
  // Up to here, without a hole.
  readonly covered: number;
  readonly holes: number;
  // Ranges that overlap without being equal.
  readonly overlaps: number;
}

export function measureCover(events: Iterable<RaspEvent>, stream: StreamName, attempt = 1, begin = 0): Cover {
  const ranges = new Map<string, [number, number]>();
  for (const { raw_ref: ref } of events) {
    if (ref?.stream === stream && ref.attempt_number === attempt)
      ranges.set(`${ref.byte_from}-${ref.byte_to}`, [ref.byte_from, ref.byte_to]);
  }
  let end = begin;
  let holes = 0;
  let overlaps = 0;
  for (const [from, to] of [...ranges.values()].toSorted((a, b) => a[0] - b[0] || a[1] - b[1])) {
    if (from > end) holes += 1;
    if (from < end) overlaps += 1;
    end = Math.max(end, to);
  }
  return { covered: end, holes, overlaps };
}
