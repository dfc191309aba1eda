// Paths that clients name: taken for what they really are, links followed, and refused where they leave the folders allowed.
import { isAbsolute, relative, resolve, sep } from 'node:path';
import { realPathOf } from '../files/real-path.js';
import { RequestError } from '../run/request-error.js';

// A folder must lie within one of the roots.
export function checkWorkspace(path: string, roots: readonly string[]): void {
  if (!isAbsolute(path)) throw new RequestError('INVALID_ARGUMENT', `cwd cannot be ${JSON.stringify(path)}: it takes an absolute path`);
  const real = realPathOf(path);
  if (real === null) throw new RequestError('INVALID_ARGUMENT', `there is no folder ${path}`);
  if (!roots.some((root) => isWithin(real, realPathOf(root)))) throw new RequestError('PATH_NOT_ALLOWED', `${path} is not within the folders where runs may work: ${roots.join(', ')} (workspace_roots in config.json)`);
}

// A file within a folder, named by a relative path; a part of the folder may be shut.
export function resolveWithin(folder: string, path: string, shut: string): string {
  const real = path.includes('\0') ? null : realPathOf(resolve(folder, path));
  const root = realPathOf(folder);
  if (isAbsolute(path) || (real !== null && (!isWithin(real, root) || isWithin(real, realPathOf(shut))))) throw new RequestError('PATH_NOT_ALLOWED', `${JSON.stringify(path)} is not a file of the run's folder, without its home`);
  if (real === null) throw new RequestError('NOT_FOUND', `there is no file ${JSON.stringify(path)}`);
  return real;
}

function isWithin(path: string, root: string | null): boolean {
  if (root === null) return false;
  const way = relative(root, path);
  return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
}
