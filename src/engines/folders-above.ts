// The folders that a working folder lies in, and which of them is its repository. Looks only.
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

// The root of the repository, or the folder itself.
export function projectOf(cwd: string): string {
  return [...listUpwards(cwd)].find((folder) => existsSync(join(folder, '.git'))) ?? cwd;
}

// Itself first.
export function* listUpwards(from: string): Generator<string> {
  for (let at = from; ; at = dirname(at)) {
    yield at;
    if (at === dirname(at)) return;
  }
}
