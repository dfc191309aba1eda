// The CODEX_HOME of one instance and of no other: the user's login linked in, their settings copied. A folder in which an agent
// may write is not trusted unless the user has said so, and keys stay out of the commands that the agent runs.
import { existsSync, mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { copyFiles, linkFiles, replaceFile } from '../engines/bring-files.js';
import { codexHome } from '../engines/codex/home.js';
import { codexSettings } from '../engines/codex/settings-file.js';
import type { Brought, Permission, User } from '../engines/engine.js';
import { projectOf } from '../engines/folders-above.js';
import { AppServerError } from './app-server-error.js';

const CONFIG = 'config.toml';
const OWNER = 'parley-instance';

export class CodexHome {
  readonly path: string;
  readonly #user: User;

  constructor(path: string, owner: string, user: User) {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    this.path = realpathSync(path);
    this.#user = user;
    this.#claim(owner);
    mkdirSync(this.temporary, { recursive: true, mode: 0o700 });
    linkFiles([...codexHome.logins(user), ...(codexHome.linked?.(user) ?? [])].map(rooted), this.path);
    copyFiles(codexHome.settings(user).map(rooted), this.path);
    this.#settle(this.path, 'read-only');
  }

  get temporary(): string {
    return join(this.path, 'tmp');
  }

  // Before an agent works in a folder: as soon as it may write there, Codex trusts the folder by itself.
  admit(cwd: string, sandbox: string | null | undefined): void {
    if (sandbox === 'workspace-write') this.#settle(cwd, 'workspace-write');
  }

  #claim(owner: string): void {
    const own = dirname(codexHome.turnFile?.from(this.#user) ?? '');
    if (existsSync(own) && realpathSync(own) === this.path) throw new AppServerError('in_use', `${this.path} is the user's own home of Codex: an instance has one of its own`);
    const claim = join(this.path, OWNER);
    const claimed = existsSync(claim) ? readFileSync(claim, 'utf8').trim() : owner;
    // A folder that is not there any more was moved or deleted.
    if (claimed !== owner && existsSync(claimed)) throw new AppServerError('in_use', `${this.path} is the home of another instance: ${claimed}`);
    replaceFile(claim, `${owner}\n`);
  }

  #settle(cwd: string, permission: Permission): void {
    const target = join(this.path, CONFIG);
    const source = [target, codexHome.turnFile?.from(this.#user) ?? ''].find((file) => existsSync(file));
    const before = source === undefined ? null : readFileSync(source, 'utf8');
    const text = codexSettings(before, { ask: null, permission, cwd, project: projectOf(cwd) });
    if (text === null) throw new AppServerError('bad_options', `${source} cannot be read as TOML: mend it, or move it away`);
    if (source !== target || text !== before) replaceFile(target, text);
  }
}

// The rules speak of a home that has CODEX_HOME in it.
function rooted(file: Brought): Brought {
  return { ...file, to: relative('.codex', file.to) };
}
