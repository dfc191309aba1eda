// Makes a private home ready for a turn. The user's login is linked in, never copied and never printed, so that a login that the
// engine renews is renewed for the user too; settings are copied, so that what the engine changes stays here.
import { existsSync, mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { copyFiles, linkFiles } from '../engines/bring-files.js';
import { replaceFile } from '../files/replace-file.js';
import type { Engine, HomeRules, TurnFileNeeds, User } from '../engines/engine.js';
import type { TurnNeeds } from '../orchestrator/deps.js';
import { TurnRefusedError } from '../run/turn-refused-error.js';
import { temporaryFolder } from '../engines/environment.js';
import { sessionFiles } from './find-session.js';

export function prepareHome({ home: rules }: Engine, user: User, home: string, turn: TurnNeeds & TurnFileNeeds): void {
  for (const folder of [home, temporaryFolder(home), ...Object.values(rules.environment(home))]) mkdirSync(folder, { recursive: true, mode: 0o700 });
  linkFiles([...rules.logins(user), ...(rules.linked?.(user) ?? [])], home);
  copyFiles(rules.settings(user), home);
  if (rules.turnFile) writeTurnFile(rules.turnFile, user, home, turn);
  if (rules.mend && turn.resumed) for (const path of sessionFiles(turn.resumed)) mend(path, rules.mend);
}

function writeTurnFile({ path, from, write }: NonNullable<HomeRules['turnFile']>, user: User, home: string, needs: TurnFileNeeds): void {
  const target = join(home, path);
  // One that is empty was not written by us: what stood in it is lost, and the user's counts again.
  const source = [target, from(user)].find((file) => existsSync(file) && statSync(file).size > 0);
  const text = write(source === undefined ? null : readFileSync(source, 'utf8'), needs);
  if (text === null) throw new TurnRefusedError('ENGINE_SETTINGS_INVALID', `${source} cannot be read as ${source?.endsWith('.toml') ? 'TOML' : 'a JSON object'}: mend it, or move it away`);
  replaceFile(target, text, { forGood: false });
}

function mend(path: string, mended: (text: string) => string): void {
  const text = readFileSync(path, 'utf8');
  const better = mended(text);
  if (better !== text) replaceFile(path, better);
}
