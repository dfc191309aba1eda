// Limits the size of a page. Each item is bounded by itself; this bounds their sum.
export const MAX_LIST_BYTES = 1024 * 1024;

// How many items fit, at least one.
export function countFitting(items: readonly unknown[], maxBytes: number = MAX_LIST_BYTES): number {
  let bytes = 0;
  for (const [index, item] of items.entries()) {
    bytes += Buffer.byteLength(JSON.stringify(item));
    if (bytes > maxBytes) return Math.max(1, index);
  }
  return items.length;
}
