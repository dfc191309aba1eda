// Whether an engine would execute things of the folder of a run whatever the permission is. Looks only.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { listUpwards } from '../engines/folders-above.js';
import type { Engine, Unstoppable, User } from '../engines/engine.js';
import { realPathOf } from '../files/real-path.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';

export function checkWorkspace({ name, home: { unstoppable } }: Engine, user: User, cwd: string): void {
  if (!unstoppable) return;
  const folders = [...listUpwards(cwd)];
  // Engines look up to the root of a project. From the user's own folder on it is not the workspace's.
  const home = folders.indexOf(realPathOf(user.home) ?? user.home);
  const found = (home < 0 ? folders : folders.slice(0, home)).flatMap((folder) => findIn(folder, unstoppable))[0];
  if (found !== undefined) throw new TurnRefusedError('WORKING_FOLDER_UNUSABLE', `${found} has ${unstoppable.what} that ${name} executes whatever the permission is: move them away, or run with the permission full`);
}

function findIn(at: string, { folders, files, mention }: Unstoppable): string[] {
  const full = folders.map((folder) => join(at, folder)).filter((folder) => existsSync(folder) && hasEntries(folder));
  const mentioning = files.map((file) => join(at, file)).filter((file) => existsSync(file) && isSuspect(file, mention));
  return [...full, ...mentioning];
}

// What cannot be looked into may be anything.
function hasEntries(folder: string): boolean {
  try {
    return readdirSync(folder).length > 0;
  } catch {
    return true;
  }
}

function isSuspect(file: string, mention: RegExp): boolean {
  try {
    return mention.test(readFileSync(file, 'utf8'));
  } catch {
    return true;
  }
}
