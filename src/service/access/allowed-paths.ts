// Paths that clients name: taken for what they really are, links followed, and refused where they leave the folders
// allowed.
import { isAbsolute, resolve } from 'node:path';
import { isWithin, nearestRealPath, realPathOf } from '../../files/real-path.js';
import { checkRoots } from '../../commands/check-folder.js';
import { RequestError } from '../../run/request-error.js';

// The folder of a run that is to be continued, which was stored as what it really is, must lie within one of the roots,
// and lead nowhere else.
export function checkWorkspace(path: string, roots: readonly string[]): void {
  checkRoots(path, path, roots);
  checkRoots(path, nearestRealPath(path), roots);
}

// A file within a folder, named by a relative path; a part of the folder may be shut. One answer for what is not there
// and what may not be read: nobody learns here which other files the machine has.
export function resolveWithin(folder: string, path: string, shut: string): string {
  const real = path.includes('\0') || isAbsolute(path) ? null : realPathOf(resolve(folder, path));
  if (real === null || !isWithin(real, realPathOf(folder)) || isWithin(real, realPathOf(shut)))
    throw new RequestError('NOT_FOUND', `There is no file ${JSON.stringify(path)} in the folder of this run.`);
  return real;
}
