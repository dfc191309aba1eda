// The CODEX_HOME of one app-server instance: the user's login is linked, their settings are copied. A working folder is
// trusted only if the user trusts it in their own settings, and keys are hidden from the commands that the agent runs.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { codexHome } from '../../engines/codex/home.js';
import type { Brought, User } from '../../engines/engine.js';
import { projectOf } from '../../files/folders-above.js';
import { OWN_FILE, readTextSync, SMALL_FILE } from '../../files/read-file.js';
import { replaceFile } from '../../files/replace-file.js';
import { copyFiles, linkFiles } from './bring-files.js';
import { homeSettings, type Folder } from './codex-home-settings.js';
import { temporaryFolder } from './environment.js';
import { tryLock } from './file-lock.js';
import { HomeError } from './home-error.js';

const CONFIG = 'config.toml';
const OWNER = 'parley-instance';
const LOCK = 'parley-lock.db';

export interface CodexHomeOptions {
  // The folder of the instance that owns the home.
  readonly owner: string;
  readonly user: User;
  // Take the home from another instance that is known not to use it any more.
  readonly takesOver?: boolean;
}

export class CodexHome {
  readonly path: string;
  readonly #user: User;

  private constructor(path: string, user: User) {
    this.path = path;
    this.#user = user;
  }

  // Throws a HomeError if another instance owns the home, or if a settings file is not TOML.
  static async open(path: string, { owner, user, takesOver = false }: CodexHomeOptions): Promise<CodexHome> {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const home = new CodexHome(realpathSync(path), user);
    // Of two concurrent callers, only one at a time reads and writes the owner.
    const unlock = await tryLock(join(home.path, LOCK));
    if (!unlock) throw new HomeError('in_use', `${home.path} is being made the home of another instance`);
    try {
      home.#claim(owner, takesOver);
    } finally {
      unlock();
    }
    home.#bringFiles();
    return home;
  }

  #bringFiles(): void {
    mkdirSync(this.temporary, { recursive: true, mode: 0o700 });
    linkFiles([...codexHome.logins(this.#user), ...(codexHome.linked?.(this.#user) ?? [])].map(inCodexHome), this.path);
    copyFiles(codexHome.settings(this.#user).map(inCodexHome), this.path);
    this.#writeSettings(null);
  }

  get temporary(): string {
    return temporaryFolder(this.path);
  }

  // Call it before each thread and each turn in a folder: Codex may trust a folder by itself, and then starts the
  // programs that the folder's own settings name.
  admit(cwd: string): void {
    this.#writeSettings({ cwd, project: projectOf(cwd) });
  }

  #claim(owner: string, takesOver: boolean): void {
    const usersHome = dirname(codexHome.turnFile?.from(this.#user) ?? '');
    if (existsSync(usersHome) && realpathSync(usersHome) === this.path)
      throw new HomeError('in_use', `${this.path} is the user's own home of Codex: an instance has one of its own`);
    const claim = join(this.path, OWNER);
    const claimed = readTextSync(claim, SMALL_FILE)?.trim() ?? owner;
    // The claim of an instance whose folder was moved or deleted does not apply.
    if (claimed !== owner && !takesOver && existsSync(claimed))
      throw new HomeError('in_use', `${this.path} is the home of another instance: ${claimed}`);
    replaceFile(claim, `${owner}\n`);
  }

  #writeSettings(folder: Folder | null): void {
    const target = join(this.path, CONFIG);
    const own = codexHome.turnFile?.from(this.#user) ?? '';
    const users = readTextSync(own, OWN_FILE);
    const before = readTextSync(target, SMALL_FILE);
    // Parley never writes an empty file: its content was lost, so the user's settings apply again.
    const text = homeSettings(before === null || before === '' ? users : before, users, folder);
    if (text === null)
      throw new HomeError('bad_options', `${own} or ${target} cannot be read as TOML: fix it, or move it away`);
    if (text !== before) replaceFile(target, text);
  }
}

// The rules describe a home that contains CODEX_HOME; here the home is CODEX_HOME itself.
function inCodexHome(file: Brought): Brought {
  return { ...file, to: relative('.codex', file.to) };
}
