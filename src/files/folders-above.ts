// Lists a folder and its parents, and finds the root of its repository. Read-only.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

// Returns the root of the repository, or the folder itself.
export function projectOf(cwd: string): string {
  return [...listUpwards(cwd)].find((folder) => existsSync(join(folder, '.git'))) ?? cwd;
}

// Starts with the folder itself.
export function* listUpwards(from: string): Generator<string> {
  for (let at = from; ; at = dirname(at)) {
    yield at;
    if (at === dirname(at)) return;
  }
}
