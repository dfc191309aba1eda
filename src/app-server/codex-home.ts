// The CODEX_HOME of one instance and of no other: the user's login linked in, their settings copied. A folder in which
// a thread works is not trusted unless the user has said so, and keys stay out of the commands that the agent runs.
import { existsSync, mkdirSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { copyFiles, linkFiles } from '../engines/bring-files.js';
import { OWN_FILE, readTextSync, SMALL_FILE } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import { codexHome } from '../engines/codex/home.js';
import type { Brought, User } from '../engines/engine.js';
import { projectOf } from '../engines/folders-above.js';
import { AppServerError } from './app-server-error.js';
import { tryLock } from './file-lock.js';
import { homeSettings, type Folder } from './home-settings.js';

const CONFIG = 'config.toml';
const OWNER = 'parley-instance';
const LOCK = 'parley-lock.db';

export class CodexHome {
  readonly path: string;
  readonly #user: User;

  private constructor(path: string, user: User) {
    this.path = path;
    this.#user = user;
  }

  static async open(path: string, owner: string, user: User, takesOver = false): Promise<CodexHome> {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    const home = new CodexHome(realpathSync(path), user);
    // Of two who come at once, one looks first.
    const unlock = await tryLock(join(home.path, LOCK));
    if (!unlock) throw new AppServerError('in_use', `${home.path} is being made the home of another instance`);
    try {
      home.#claim(owner, takesOver);
    } finally {
      unlock();
    }
    home.#furnish();
    return home;
  }

  #furnish(): void {
    mkdirSync(this.temporary, { recursive: true, mode: 0o700 });
    linkFiles([...codexHome.logins(this.#user), ...(codexHome.linked?.(this.#user) ?? [])].map(rooted), this.path);
    copyFiles(codexHome.settings(this.#user).map(rooted), this.path);
    this.#settle(null);
  }

  get temporary(): string {
    return join(this.path, 'tmp');
  }

  // Before each thread and each turn in a folder: Codex trusts one by itself, and then starts what the folder's own
  // settings name.
  admit(cwd: string): void {
    this.#settle({ cwd, project: projectOf(cwd) });
  }

  #claim(owner: string, takesOver: boolean): void {
    const own = dirname(codexHome.turnFile?.from(this.#user) ?? '');
    if (existsSync(own) && realpathSync(own) === this.path)
      throw new AppServerError(
        'in_use',
        `${this.path} is the user's own home of Codex: an instance has one of its own`,
      );
    const claim = join(this.path, OWNER);
    const claimed = readTextSync(claim, SMALL_FILE)?.trim() ?? owner;
    // A folder that is not there any more was moved or deleted.
    if (claimed !== owner && !takesOver && existsSync(claimed))
      throw new AppServerError('in_use', `${this.path} is the home of another instance: ${claimed}`);
    replaceFile(claim, `${owner}\n`);
  }

  #settle(folder: Folder | null): void {
    const target = join(this.path, CONFIG);
    const own = codexHome.turnFile?.from(this.#user) ?? '';
    const users = readTextSync(own, OWN_FILE);
    const before = readTextSync(target, SMALL_FILE);
    // One that is empty was not written by us: what stood in it is lost, and the user's counts again.
    const text = homeSettings(before === null || before === '' ? users : before, users, folder);
    if (text === null)
      throw new AppServerError('bad_options', `${own} or ${target} cannot be read as TOML: mend it, or move it away`);
    if (text !== before) replaceFile(target, text);
  }
}

// The rules speak of a home that has CODEX_HOME in it.
function rooted(file: Brought): Brought {
  return { ...file, to: relative('.codex', file.to) };
}
