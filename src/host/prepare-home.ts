// Makes a private home ready for a turn. The user's login is linked in, never copied and never printed, so that a login
// that the engine renews is renewed for the user too; settings are copied, so that what the engine changes stays here.
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { copyFiles, linkFiles } from '../engines/bring-files.js';
import { OWN_FILE, readText, SMALL_FILE, UnsafeFileError, type FileRules } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import type { Engine, HomeRules, TurnFileNeeds, User } from '../engines/engine.js';
import type { TurnNeeds } from '../journal/deps.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import { temporaryFolder } from '../engines/environment.js';
import { sessionFiles } from './find-session.js';

export async function prepareHome(
  { home: rules }: Engine,
  user: User,
  home: string,
  turn: TurnNeeds & TurnFileNeeds,
): Promise<void> {
  for (const folder of [home, temporaryFolder(home), ...Object.values(rules.environment(home))])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  linkFiles([...rules.logins(user), ...(rules.linked?.(user) ?? [])], home);
  copyFiles(rules.settings(user), home);
  if (rules.turnFile) await writeTurnFile(rules.turnFile, user, home, turn);
  if (rules.mend && turn.resumed) for (const path of await sessionFiles(turn.resumed)) await mend(path, rules.mend);
}

async function writeTurnFile(
  { path, from, write }: NonNullable<HomeRules['turnFile']>,
  user: User,
  home: string,
  needs: TurnFileNeeds,
): Promise<void> {
  const target = join(home, path);
  // One that is empty was not written by us: what stood in it is lost, and the user's counts again.
  const kept = await readIfFile(target, SMALL_FILE);
  const users = kept ? null : await readIfFile(from(user), OWN_FILE);
  const source = kept ? target : from(user);
  const text = write(kept || users || null, needs);
  if (text === null)
    throw new TurnRefusedError(
      'ENGINE_SETTINGS_INVALID',
      `${source} cannot be read as ${source.endsWith('.toml') ? 'TOML' : 'a JSON object'}: mend it, or move it away`,
    );
  replaceFile(target, text, { forGood: false });
}

// What the agent has put in the place of its settings is not read: the file is written anew.
async function readIfFile(path: string, rules: FileRules): Promise<string | null> {
  try {
    return await readText(path, rules);
  } catch (error) {
    if (!(error instanceof UnsafeFileError)) throw error;
    if (rules === OWN_FILE) throw new TurnRefusedError('ENGINE_SETTINGS_INVALID', error.message);
    await rm(path, { recursive: true, force: true });
    return null;
  }
}

const LARGEST_SESSION = { maxBytes: 256 * 1024 * 1024 };

// A session that is too large to be mended is resumed as it is.
async function mend(path: string, mended: (text: string) => string): Promise<void> {
  const text = await readText(path, LARGEST_SESSION).catch(() => null);
  const better = text === null ? null : mended(text);
  if (better !== null && better !== text) replaceFile(path, better);
}
