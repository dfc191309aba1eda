// What paths really lead to, and whether one lies within another.
import { readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

// With all links followed; null if it leads nowhere, or cannot be looked at.
export function realPathOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

// Linux follows as many links in one path.
const MAX_LINKS = 40;

// The same for a path of which the end may be missing: what is there of it is resolved, and the rest is added. A link
// whose target is missing leads to that target.
export function nearestRealPath(path: string, links = MAX_LINKS): string {
  const real = realPathOf(path);
  const above = dirname(path);
  if (real !== null || above === path) return real ?? path;
  const parent = nearestRealPath(above, links);
  const target = links > 0 ? linkAt(join(parent, basename(path))) : null;
  return target === null ? join(parent, basename(path)) : nearestRealPath(resolve(parent, target), links - 1);
}

function linkAt(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

// Both must be real paths. A folder lies within itself.
export function isWithin(path: string, root: string | null): boolean {
  if (root === null) return false;
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
