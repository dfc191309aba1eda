// Refuses a workspace whose files an engine would execute regardless of the permission. Only reads, and never blocks on
// a pipe or a device.
import { formOf } from '../../messages/forms.js';
import { join } from 'node:path';
import { listUpwards } from '../../files/folders-above.js';
import type { Engine, Unstoppable, User } from '../../engines/engine.js';
import { hasEntries } from '../../files/list-folder.js';
import { OWN_FILE, readText } from '../../files/read-file.js';
import { realPathOf } from '../../files/real-path.js';
import { refuseTurn } from '../../run/turn-refused-error.js';

export async function checkWorkspace({ name, home: { unstoppable } }: Engine, user: User, cwd: string): Promise<void> {
  if (!unstoppable) return;
  const folders = [...listUpwards(cwd)];
  // Engines search up to the root of a project. The user's home and the folders above it do not belong to the
  // workspace.
  const home = folders.indexOf(realPathOf(user.home) ?? user.home);
  for (const folder of home < 0 ? folders : folders.slice(0, home)) {
    const path = await findIn(folder, unstoppable);
    if (path !== null)
      throw refuseTurn('WORKING_FOLDER_UNUSABLE.programs', {
        path,
        programs: formOf(unstoppable.what),
        engine: name,
      });
  }
}

async function findIn(at: string, { folders, files, mention }: Unstoppable): Promise<string | null> {
  for (const folder of folders) if (await hasEntries(join(at, folder))) return join(at, folder);
  for (const file of files) if (await isSuspect(join(at, file), mention)) return join(at, file);
  return null;
}

// Follows links, as the engine does. A file that cannot be read (a pipe, a device, a huge file) counts as suspect.
async function isSuspect(file: string, mention: RegExp): Promise<boolean> {
  try {
    const text = await readText(file, OWN_FILE);
    return text !== null && mention.test(text);
  } catch {
    return true;
  }
}
