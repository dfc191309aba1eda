// Whether an engine would execute things of the folder of a run whatever the permission is. Looks only, and at nothing
// that could hold it up.
import { join } from 'node:path';
import { listUpwards } from '../engines/folders-above.js';
import type { Engine, Unstoppable, User } from '../engines/engine.js';
import { hasEntries } from '../files/list-folder.js';
import { OWN_FILE, readText } from '../files/read-file.js';
import { realPathOf } from '../files/real-path.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';

export async function checkWorkspace({ name, home: { unstoppable } }: Engine, user: User, cwd: string): Promise<void> {
  if (!unstoppable) return;
  const folders = [...listUpwards(cwd)];
  // Engines look up to the root of a project. From the user's own folder on it is not the workspace's.
  const home = folders.indexOf(realPathOf(user.home) ?? user.home);
  for (const folder of home < 0 ? folders : folders.slice(0, home)) {
    const found = await findIn(folder, unstoppable);
    if (found !== null)
      throw new TurnRefusedError(
        'WORKING_FOLDER_UNUSABLE',
        `${found} has ${unstoppable.what} that ${name} executes whatever the permission is: move them away, or ` +
          'run with the permission full',
      );
  }
}

async function findIn(at: string, { folders, files, mention }: Unstoppable): Promise<string | null> {
  for (const folder of folders) if (await hasEntries(join(at, folder))) return join(at, folder);
  for (const file of files) if (await isSuspect(join(at, file), mention)) return join(at, file);
  return null;
}

// Links are followed, as the engine would. What cannot be looked into (a pipe, a device, a file of any size) may be
// anything.
async function isSuspect(file: string, mention: RegExp): Promise<boolean> {
  try {
    const text = await readText(file, OWN_FILE);
    return text !== null && mention.test(text);
  } catch {
    return true;
  }
}
