// Whether the user's settings name a provider that needs none of the logins known to Parley: a local model, a gateway,
// or credentials of the cloud. Such a user is not "logged out". Only reads settings; an unreadable file proves nothing.
import type { Engine, User } from '../../engines/engine.js';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';

export function hasOwnProvider({ home: { ownProvider } }: Pick<Engine, 'home'>, user: User): boolean {
  if (!ownProvider) return false;
  return ownProvider.files(user).some((path) => {
    const text = readIfPossible(path);
    return text !== null && ownProvider.isNamedIn(text, user);
  });
}

function readIfPossible(path: string): string | null {
  try {
    return readTextSync(path, OWN_FILE);
  } catch {
    return null;
  }
}
