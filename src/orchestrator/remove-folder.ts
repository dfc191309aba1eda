// Removes a folder with everything in it, also what its owner may not write to: agents leave such folders behind (the module
// cache of Go, for one).
import { chmod, lstat, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

// Another host may be removing it, too.
const OPTIONS = { recursive: true, force: true, maxRetries: 3 } as const;

export async function removeFolder(path: string): Promise<void> {
  try {
    await rm(path, OPTIONS);
  } catch {
    await openUp(path);
    await rm(path, OPTIONS);
  }
}

// Only folders: a file goes with the folder it is in. Links are left alone.
async function openUp(path: string): Promise<void> {
  if (!(await lstat(path).catch(() => null))?.isDirectory()) return;
  await chmod(path, 0o700);
  for (const name of await readdir(path)) await openUp(join(path, name));
}
