// Removes a folder with everything in it, also what its owner may not write to: agents leave such folders behind (the module
// cache of Go, for one).
import { chmodSync, lstatSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export function removeFolder(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {
    openUp(path);
    rmSync(path, { recursive: true, force: true });
  }
}

// Only folders: a file goes with the folder it is in. Links are left alone.
function openUp(path: string): void {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  chmodSync(path, 0o700);
  for (const name of readdirSync(path)) openUp(join(path, name));
}
