// Resolves real paths, and checks whether one path is inside another.
import { readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path';

// Follows all links. Returns null if the path does not exist or cannot be read.
export function realPathOf(path: string): string | null {
  try {
    return realpathSync(path);
  } catch {
    return null;
  }
}

// The limit that Linux has for one path.
const MAX_LINKS = 40;

// Like realPathOf, for a path whose last parts may be missing: resolves the existing part and appends the rest. A
// dangling link resolves to its missing target.
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

// Both must be real paths. A folder is inside itself.
export function isWithin(path: string, root: string | null): boolean {
  if (root === null) return false;
  const fromRoot = relative(root, path);
  return fromRoot === '' || (fromRoot !== '..' && !fromRoot.startsWith(`..${sep}`) && !isAbsolute(fromRoot));
}
