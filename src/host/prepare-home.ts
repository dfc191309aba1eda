// Makes a private home ready for a turn. The user's login is linked in, never copied and never printed, so that a login that the
// engine renews is renewed for the user too; settings are copied, so that what the engine changes stays here.
import { copyFileSync, existsSync, lstatSync, mkdirSync, readFileSync, realpathSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Brought, Engine, User } from '../engines/engine.js';
import type { TurnNeeds } from '../orchestrator/deps.js';
import { temporaryFolder } from './environment.js';
import { sessionFiles } from './find-session.js';

const PRIVATE = { mode: 0o600 };

export function prepareHome({ home: rules }: Engine, user: User, home: string, { ask, resumed }: TurnNeeds): void {
  for (const folder of [home, temporaryFolder(home), ...Object.values(rules.environment(home))]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  // The link leads to the file itself, also when the user has a link there.
  bring(rules.logins(user), home, (from, to) => symlinkSync(realpathSync(from), to));
  bring(rules.settings(user), home, (from, to) => copyFileSync(from, to));
  if (rules.turnFile) {
    const path = join(home, rules.turnFile.path);
    replace(path, rules.turnFile.write(existsSync(path) ? readFileSync(path, 'utf8') : null, ask));
  }
  if (rules.mend && resumed) for (const path of sessionFiles(resumed)) mend(path, rules.mend);
}

// What is there already stays, and counts even if it is a link that leads nowhere.
function bring(files: readonly Brought[], home: string, put: (from: string, to: string) => void): void {
  for (const { from, to } of files) {
    const path = join(home, to);
    if (!existsSync(from) || lstatSync(path, { throwIfNoEntry: false })) continue;
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    put(from, path);
  }
}

function mend(path: string, mended: (text: string) => string): void {
  const text = readFileSync(path, 'utf8');
  const better = mended(text);
  if (better !== text) replace(path, better);
}

function replace(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(`${path}.new`, text, PRIVATE);
  renameSync(`${path}.new`, path);
}
