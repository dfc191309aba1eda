// Prepares a private home for a turn. The user's login is linked or used where it is, never copied and never printed,
// so a login that the engine renews is renewed for the user too. Settings are copied, so changes by the engine stay in
// the home.
import { phrase } from '../../messages/phrase.js';
import { mkdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { copyFiles, linkFiles } from './bring-files.js';
import { OWN_FILE, readText, SMALL_FILE, UnsafeFileError, type FileRules } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import type { Engine, HomeRules, TurnFileNeeds, User } from '../../engines/engine.js';
import type { TurnNeeds } from '../engine-runtime.js';
import { refuseTurn } from '../../run/turn-refused-error.js';
import { temporaryFolder } from './environment.js';
import { sessionFiles } from '../sessions/find-session.js';

export interface HomeNeeds extends TurnNeeds, TurnFileNeeds {
  readonly user: User;
  readonly home: string;
}

export async function prepareHome({ home: rules }: Engine, needs: HomeNeeds): Promise<void> {
  const { user, home, resumed } = needs;
  for (const folder of [home, temporaryFolder(home), ...Object.values(rules.environment(home))])
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  linkFiles([...(rules.loginFolder ? [] : rules.logins(user)), ...(rules.linked?.(user) ?? [])], home);
  copyFiles(rules.settings(user), home);
  if (rules.turnFile) await writeTurnFile(rules.turnFile, needs);
  if (rules.mend && resumed) for (const path of await sessionFiles(resumed)) await repair(path, rules.mend);
}

async function writeTurnFile(
  { path, from, write }: NonNullable<HomeRules['turnFile']>,
  needs: HomeNeeds,
): Promise<void> {
  const { user, home } = needs;
  const target = join(home, path);
  // Parley never writes an empty file: its content was lost, so the user's settings apply again.
  const kept = await readIfFile(target, SMALL_FILE);
  const users = kept ? null : await readIfFile(from(user), OWN_FILE);
  const source = kept ? target : from(user);
  const text = write(kept || users || null, needs);
  if (text === null)
    throw refuseTurn('ENGINE_SETTINGS_INVALID.form', {
      file: source,
      form: source.endsWith('.toml') ? 'TOML' : phrase('json_object'),
    });
  replaceFile(target, text, { forGood: false });
}

// Replaces anything but a regular file in the agent's home. A special file of the user is refused instead.
async function readIfFile(path: string, rules: FileRules): Promise<string | null> {
  try {
    return await readText(path, rules);
  } catch (error) {
    if (!(error instanceof UnsafeFileError)) throw error;
    if (rules === OWN_FILE) throw refuseTurn('ENGINE_SETTINGS_INVALID.unreadable', { reason: error.phrase });
    await rm(path, { recursive: true, force: true });
    return null;
  }
}

const LARGEST_SESSION = { maxBytes: 256 * 1024 * 1024 };

// Repairs a stored session before it is resumed. A session above the size limit is resumed unchanged.
async function repair(path: string, repairText: (text: string) => string): Promise<void> {
  const text = await readText(path, LARGEST_SESSION).catch(() => null);
  const repaired = text === null ? null : repairText(text);
  if (repaired !== null && repaired !== text) replaceFile(path, repaired);
}
