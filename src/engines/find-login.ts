// Whether the user is logged in to an engine, as far as files and environment tell. Nothing is told of the login itself.
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import type { Engine, LoginFile, User } from './engine.js';

// Where the login is, or null.
export function findLogin(engine: Pick<Engine, 'home'>, user: User): string | null {
  return findOwnLogin(engine, user) ?? (Object.keys(keyInstead(engine, user)).length > 0 ? (engine.home.keyInstead?.of ?? null) : null);
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
