// The files of a run's folder as others may see them: without its home, and without what a link leads to. An agent may be at work in it,
// and may mean harm: what has become something else by the time it is opened is not what was asked for.
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, realpath, type FileHandle } from 'node:fs/promises';
import { join } from 'node:path';

// In the order of their names. `folder` must be a real path; `onEntry` is told of each thing that is looked at, and may stop it by answering false.
export async function* walkFiles(folder: string, shut: string, onEntry: () => boolean = () => true): AsyncGenerator<string, void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => []);
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!onEntry()) return;
    const path = join(folder, entry.name);
    if (path === shut) continue;
    // A link is neither.
    if (entry.isDirectory()) yield* walkFiles(path, shut, onEntry);
    else if (entry.isFile()) yield path;
  }
}

// Open, and really the file at that place, not one that a link on the way to it has led to for a moment. Null: it is not.
export async function openInPlace(path: string): Promise<FileHandle | null> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => null);
  if (!file) return null;
  if ((await file.stat()).isFile() && (await isAt(file, path))) return file;
  await file.close();
  return null;
}

// Linux says what was opened. Elsewhere the way is looked at again, which whoever changes it all the time may outrun.
async function isAt(file: FileHandle, path: string): Promise<boolean> {
  const opened = await readlink(`/proc/self/fd/${file.fd}`).catch(() => null);
  if (opened !== null) return opened === path;
  const [stat, named, real] = [await file.stat(), await lstat(path).catch(() => null), await realpath(path).catch(() => null)];
  return real === path && named?.ino === stat.ino && named.dev === stat.dev;
}
