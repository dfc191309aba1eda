// Whether the user's settings name a provider that needs none of the logins Parley knows of: a model on this machine, a
// gateway, credentials of the cloud. Then "not logged in" would be wrong. Reads settings only; what cannot be read says
// nothing.
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { asObject, asString, parseJson, type JsonObject } from '../kernel/json.js';
import type { Engine, User } from './engine.js';

// A string is matched first, so that what looks like a comment in it stays.
const STRING_OR_COMMENT = /"(?:[^"\\]|\\[^])*"|\/\/[^\r\n]*|\/\*[^]*?(?:\*\/|$)/g;

export function hasOwnProvider({ home: { ownProvider } }: Pick<Engine, 'home'>, user: User): boolean {
  if (!ownProvider) return false;
  return ownProvider.files(user).some((path) => {
    const text = readSmall(path);
    return text !== null && ownProvider.isNamedIn(text, user);
  });
}

function readSmall(path: string): string | null {
  try {
    return readTextSync(path, OWN_FILE);
  } catch {
    return null;
  }
}

// JSON in which comments may stand.
export function readCommented(text: string): JsonObject {
  return asObject(parseJson(text.replace(STRING_OR_COMMENT, (match) => (match.startsWith('"') ? match : ' ')))) ?? {};
}

// Of OpenCode: the provider of the model that is set, or any if none is.
export function namesOpencodeProvider(text: string): boolean {
  const settings = readCommented(text);
  const providers = asObject(settings.provider) ?? {};
  const model = asString(settings.model);
  const names = model === undefined ? Object.keys(providers) : [model.split('/')[0] ?? ''];
  return names.some((name) => asObject(asObject(providers[name])?.options) !== undefined);
}
