// Resolves a folder to its canonical path, without links, `.` and `..`. Trust levels apply to canonical paths only.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { listUpwards } from './folders-above.js';

// For a folder that does not exist, resolves the part that exists.
export function resolveFolder(folder: string, from: string): string {
  const path = resolve(from, folder);
  const there = [...listUpwards(path)].find((above) => existsSync(above)) ?? dirname(path);
  return join(realpathSync(there), relative(there, path));
}
