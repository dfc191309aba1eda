// Refuses a workspace with things that the engine would execute whatever the permission is. Looks only.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Engine, User } from '../engines/engine.js';

export function checkWorkspace({ name, home: { unstoppable } }: Engine, user: User, cwd: string): void {
  if (!unstoppable) return;
  const { what, folders, files, mention } = unstoppable;
  // Up to the user's own folder, since engines look up to the root of a project. What is in that folder is the user's.
  for (let at = cwd; at !== user.home; at = dirname(at)) {
    const found = [...folders.map((folder) => join(at, folder)).filter(hasFiles), ...files.map((file) => join(at, file)).filter((path) => existsSync(path) && mention.test(readFileSync(path, 'utf8')))][0];
    if (found !== undefined) throw new Error(`${found} has ${what} that ${name} executes whatever the permission is: move them away, or run with the permission full`);
    if (at === dirname(at)) return;
  }
}

function hasFiles(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0;
}
