// Which parts of a region were on the screen, as fractions of its height: a region that is laid out anew, because a
// phone was turned, keeps them. Pure.
export interface Part {
  readonly from: number;
  readonly to: number;
}

// The parts, without overlaps, after one more was on the screen. Parts that are no further apart than `gap`
// count as one.
export function addPart(parts: readonly Part[], added: Part, gap: number): readonly Part[] {
  if (added.to <= added.from) return parts;
  const joins = (part: Part): boolean => part.from <= added.to + gap && part.to >= added.from - gap;
  const joined = [added, ...parts.filter(joins)];
  const from = Math.min(...joined.map((part) => part.from));
  const to = Math.max(...joined.map((part) => part.to));
  return [...parts.filter((part) => !joins(part)), { from, to }];
}

export function isWhole(parts: readonly Part[], gap: number): boolean {
  const [only] = parts;
  return parts.length === 1 && only !== undefined && only.from <= gap && only.to >= 1 - gap;
}
