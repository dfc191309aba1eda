// Makes a private home ready for a turn. The user's login is linked in, never copied and never printed, so that a login that the
// engine renews is renewed for the user too; settings are copied, so that what the engine changes stays here.
import { cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, realpathSync, renameSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { Brought, Engine, HomeRules, TurnFileNeeds, User } from '../engines/engine.js';
import type { TurnNeeds } from '../orchestrator/deps.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import { temporaryFolder } from './environment.js';
import { sessionFiles } from './find-session.js';

const PRIVATE = { mode: 0o600 };

export function prepareHome({ home: rules }: Engine, user: User, home: string, turn: TurnNeeds & TurnFileNeeds): void {
  for (const folder of [home, temporaryFolder(home), ...Object.values(rules.environment(home))]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  // The link leads to the file itself, also when the user has a link there.
  bring([...rules.logins(user), ...(rules.linked?.(user) ?? [])], home, (from, to) => symlinkSync(realpathSync(from), to));
  bring(rules.settings(user).flatMap(listFiles), home, copy);
  if (rules.turnFile) writeTurnFile(rules.turnFile, user, home, turn);
  if (rules.mend && turn.resumed) for (const path of sessionFiles(turn.resumed)) mend(path, rules.mend);
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

// A folder of which only some files are brought is those files.
function listFiles({ from, to, only }: Brought): Brought[] {
  if (!only) return [{ from, to }];
  const names = existsSync(from) ? readdirSync(from).filter((name) => only.test(name)) : [];
  return names.map((name) => ({ from: join(from, name), to: join(to, name) })).filter((file) => existsSync(file.from) && statSync(file.from).isFile());
}

// Links become what they lead to: a relative one would lead elsewhere here. One that leads nowhere is left out.
function copy(from: string, to: string): void {
  cpSync(from, to, { recursive: true, dereference: true, filter: (path) => existsSync(path) && !['node_modules', '.git'].includes(basename(path)) });
}

function writeTurnFile({ path, from, write }: NonNullable<HomeRules['turnFile']>, user: User, home: string, needs: TurnFileNeeds): void {
  const target = join(home, path);
  const source = [target, from(user)].find((file) => existsSync(file));
  const text = write(source === undefined ? null : readFileSync(source, 'utf8'), needs);
  if (text === null) throw new TurnRefusedError('ENGINE_SETTINGS_INVALID', `${source} cannot be read as ${source?.endsWith('.toml') ? 'TOML' : 'a JSON object'}: mend it, or move it away`);
  replace(target, text);
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
