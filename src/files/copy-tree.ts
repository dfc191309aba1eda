// Copies settings of the user into a private home: regular files and folders, within bounds. Links become what they
// lead to, since a relative one would lead elsewhere there; pipes, devices, and links that lead nowhere or round in a
// circle are left out.
import { copyFileSync, mkdirSync, opendirSync, statSync } from 'node:fs';
import { join } from 'node:path';

// Skills and commands of a user are hundreds of small files.
const MOST_ENTRIES = 20_000;
const MOST_DEPTH = 16;
const MOST_BYTES = 64 * 1024 * 1024;
const LEFT_OUT = new Set(['node_modules', '.git']);

export function copyTree(from: string, to: string): void {
  copy(from, to, { left: MOST_ENTRIES, depth: 0 });
}

// The names in a folder, as many as are looked at; none if it is missing.
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
    // Not there, or not a folder.
  }
  return names.toSorted();
}

function copy(from: string, to: string, bounds: { left: number; readonly depth: number }): void {
  const found = statOrNull(from);
  bounds.left -= 1;
  if (!found || bounds.left < 0) return;
  if (found.isFile() && found.size <= MOST_BYTES) copyFileSync(from, to);
  if (!found.isDirectory() || bounds.depth === MOST_DEPTH) return;
  mkdirSync(to, { recursive: true, mode: 0o700 });
  const inside = { left: bounds.left, depth: bounds.depth + 1 };
  for (const name of listNames(from)) if (!LEFT_OUT.has(name)) copy(join(from, name), join(to, name), inside);
  bounds.left = inside.left;
}

// A link that leads round in a circle leads nowhere.
function statOrNull(path: string): ReturnType<typeof statSync> | null {
  try {
    return statSync(path);
  } catch {
    return null;
  }
}
