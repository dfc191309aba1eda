// The name that somebody probably meant.

const MOST_EDITS = 3;

// Null if none is close enough to be worth proposing.
export function findClosest(given: string, names: readonly string[]): string | null {
  const ranked = names.map((name) => [editsBetween(given.slice(0, 100).toLowerCase(), name.toLowerCase()), name] as const).toSorted(([a], [b]) => a - b);
  const [edits, name] = ranked[0] ?? [Infinity, ''];
  return edits <= Math.min(MOST_EDITS, name.length - 1) ? name : null;
}

// How many characters have to be added, removed or replaced.
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let at = 1; at <= from.length; at += 1) {
    const next = [at];
    for (let column = 1; column <= to.length; column += 1) {
      const replaced = (row[column - 1] ?? 0) + (from[at - 1] === to[column - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
