// The one name of a folder, whatever links, dots and slashes led there: what is said of it holds only under that name.
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { listUpwards } from '../engines/folders-above.js';

// Of one that is not there, the part that is.
export function resolveFolder(folder: string, from: string): string {
  const path = resolve(from, folder);
  const there = [...listUpwards(path)].find((above) => existsSync(above)) ?? dirname(path);
  return join(realpathSync(there), relative(there, path));
}
