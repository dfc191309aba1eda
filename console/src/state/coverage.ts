// Which parts of a region were on the screen, as fractions of its height, so that they stay valid when the layout
// changes (a rotated phone). Pure.
export interface Part {
  readonly from: number;
  readonly to: number;
}

// Returns the parts, without overlaps, after another part was on the screen. Parts at most `gap` apart are joined.
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
