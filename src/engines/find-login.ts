// Whether the user is logged in to an engine, as far as files and environment tell. Nothing is told of the login
// itself.
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import type { Engine, LoginFile, User } from './engine.js';
import { hasOwnProvider } from './own-provider.js';

// Where the login is, or null.
export function findLogin(engine: Pick<Engine, 'home'>, user: User): string | null {
  return (
    findOwnLogin(engine, user) ??
    (Object.keys(keyInstead(engine, user)).length > 0 ? (engine.home.keyInstead?.of ?? null) : null)
  );
}

export interface LoginState {
  // Where the login is, or null.
  readonly by: string | null;
  // It needs one, and there is none.
  readonly isMissing: boolean;
}

export function lookForLogin(engine: Pick<Engine, 'home'>, user: User): LoginState {
  const by = findLogin(engine, user);
  return { by, isMissing: by === null && engine.home.howToLogIn !== '' && !hasOwnProvider(engine, user) };
}

// The key that people have under another name, under the name that the engine knows.
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
    // A pipe, say, or a file that this account may not read: the engine cannot use it either.
    return false;
  }
}
