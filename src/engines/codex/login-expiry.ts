// Reads from the access token when a login of Codex expires; an API key never expires. The login itself is not stored.
import { asObject, asString, parseJson } from '../../kernel/json.js';

export function codexLoginExpiry(text: string): number | null {
  const token = asString(asObject(asObject(parseJson(text))?.tokens)?.access_token);
  const claims = asObject(parseJson(Buffer.from(token?.split('.')[1] ?? '', 'base64url').toString('utf8')));
  const seconds = claims?.exp;
  return typeof seconds === 'number' ? seconds * 1000 : null;
}
