// What paths really lead to, and whether one lies within another.
import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, sep } from 'node:path';

// With all links followed; null if it leads nowhere, or cannot be looked at.
export function realPathOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

// The same for a path of which the end may be missing: what is there of it is resolved, and the rest is added.
export function nearestRealPath(path: string): string {
  const above = dirname(path);
  return realPathOf(path) ?? (above === path ? path : join(nearestRealPath(above), relative(above, path)));
}

// Both must be real paths. A folder lies within itself.
export function isWithin(path: string, root: string | null): boolean {
  if (root === null) return false;
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
