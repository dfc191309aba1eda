// Whether the user is logged in to an engine, judged by files and environment variables. Never returns or prints the
// login itself.
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import type { Engine, LoginFile, User } from '../../engines/engine.js';
import { hasOwnProvider } from './own-provider.js';

// Returns the file or the variable that contains the login, or null.
export function findLogin(engine: Pick<Engine, 'home'>, user: User): string | null {
  return (
    findOwnLogin(engine, user) ??
    (Object.keys(keyInstead(engine, user)).length > 0 ? (engine.home.keyInstead?.of ?? null) : null)
  );
}

export interface LoginState {
  // The file or the variable that contains the login, or null.
  readonly by: string | null;
  // The engine needs a login, and there is none.
  readonly isMissing: boolean;
}

export function lookForLogin(engine: Pick<Engine, 'home'>, user: User): LoginState {
  const by = findLogin(engine, user);
  return { by, isMissing: by === null && engine.home.howToLogIn !== '' && !hasOwnProvider(engine, user) };
}

// If the engine has no login of its own and the user has the key in another variable: returns it under the variable
// that the engine reads.
export function keyInstead(engine: Pick<Engine, 'home'>, user: User): Record<string, string> {
  const rule = engine.home.keyInstead;
  const key = rule && user.env[rule.of];
  return rule && key && findOwnLogin(engine, user) === null ? { [rule.as]: key } : {};
}

function findOwnLogin({ home: { logins, keys } }: Pick<Engine, 'home'>, user: User): string | null {
  const key = Object.keys(user.env).find((name) => user.env[name] && keys.some((pattern) => pattern.test(name)));
  return key ?? logins(user).find(isLogin)?.from ?? null;
}

function isLogin({ from, having }: LoginFile): boolean {
  try {
    const text = readTextSync(from, OWN_FILE);
    return text !== null && (!having || having.test(text));
  } catch {
    // For instance a pipe, or a file without read permission: the engine cannot use it either.
    return false;
  }
}
