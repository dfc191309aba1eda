// Whether the user is logged in to an engine, as far as files and environment tell. Nothing is read of the login itself.
import { existsSync } from 'node:fs';
import type { Engine, User } from '../engines/engine.js';

// Where the login is, or null.
export function findLogin({ home: { logins, keys } }: Engine, user: User): string | null {
  const key = Object.keys(user.env).find((name) => user.env[name] !== '' && keys.some((pattern) => pattern.test(name)));
  return key ?? logins(user).find(({ from }) => existsSync(from))?.from ?? null;
}
