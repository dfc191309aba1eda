// Makes a private home ready for an engine: the user's login is linked in, never copied and never printed, so that a login
// that the engine renews is renewed for the user too.
import { existsSync, lstatSync, mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Engine, User } from '../engines/engine.js';

export function prepareHome(engine: Engine, user: User, home: string): void {
  for (const folder of Object.values(engine.home.environment(home))) mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const { from, to } of engine.home.logins(user)) {
    const link = join(home, to);
    if (!existsSync(from) || isThere(link)) continue;
    mkdirSync(dirname(link), { recursive: true, mode: 0o700 });
    symlinkSync(from, link);
  }
}

// A link counts even if it leads nowhere.
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
