// Checks paths that clients name: links are resolved first, and a path outside the allowed folders is refused.
import { isAbsolute, resolve } from 'node:path';
import { isWithin, nearestRealPath, realPathOf } from '../../files/real-path.js';
import { checkRoots } from '../../commands/check-folder.js';
import { refusal } from '../../run/request-error.js';

// The folder of a continued run was stored as a real path. It must be within one of the roots and still resolve to
// itself.
export function checkWorkspace(path: string, roots: readonly string[]): void {
  checkRoots(path, path, roots);
  checkRoots(path, nearestRealPath(path), roots);
}

// Resolves a relative path to a file in a folder. Refuses files outside it and files in its closed part. A missing file
// gets the same response as a forbidden one, so that a caller cannot find out which other files exist.
export function resolveWithin(folder: string, path: string, shut: string): string {
  const real = path.includes('\0') || isAbsolute(path) ? null : realPathOf(resolve(folder, path));
  if (real === null || !isWithin(real, realPathOf(folder)) || isWithin(real, realPathOf(shut)))
    throw refusal('NOT_FOUND.file', { path: JSON.stringify(path) });
  return real;
}
