// Copies the user's settings into a private home: regular files and folders, up to a limit. Links are replaced by their
// targets, because a relative link would point elsewhere in the copy. Pipes, devices, dangling links and circular links
// are skipped.
import { copyFileSync, mkdirSync, opendirSync, statSync } from 'node:fs';
import { join } from 'node:path';

// A user's skills and commands are hundreds of small files.
const MOST_ENTRIES = 20_000;
const MOST_DEPTH = 16;
const MOST_BYTES = 64 * 1024 * 1024;
const LEFT_OUT = new Set(['node_modules', '.git']);

export function copyTree(from: string, to: string): void {
  copy(from, to, { left: MOST_ENTRIES, depth: 0 });
}

// Returns the names in a folder, up to the limit; an empty list if the folder is missing.
export function listNames(path: string): string[] {
  const names: string[] = [];
  try {
    const folder = opendirSync(path);
    try {
      for (let entry = folder.readSync(); entry && names.length < MOST_ENTRIES; entry = folder.readSync())
        names.push(entry.name);
    } finally {
      folder.closeSync();
    }
  } catch {
    // The folder is missing, or the path is not a folder.
  }
  return names.toSorted();
}

function copy(from: string, to: string, bounds: { left: number; readonly depth: number }): void {
  const stats = statOrNull(from);
  bounds.left -= 1;
  if (!stats || bounds.left < 0) return;
  if (stats.isFile() && stats.size <= MOST_BYTES) copyFileSync(from, to);
  if (!stats.isDirectory() || bounds.depth === MOST_DEPTH) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  const inside = { left: bounds.left, depth: bounds.depth + 1 };
  for (const name of listNames(from)) if (!LEFT_OUT.has(name)) copy(join(from, name), join(to, name), inside);
  bounds.left = inside.left;
}

// Returns null also for a circular link.
function statOrNull(path: string): ReturnType<typeof statSync> | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}
