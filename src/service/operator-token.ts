// The operator's token: made at the first start, the same ever after, in a file that only its owner can read.
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { replaceFile } from '../files/replace-file.js';
import { RequestError } from '../run/request-error.js';

// It goes into a cookie and a link.
export const TOKEN_FORM = /^[\w.~+/=-]{16,500}$/;

export function operatorToken(dataDir: string): string {
  const path = join(dataDir, 'token');
  if (existsSync(path)) return readOperatorToken(dataDir);
  const token = newToken();
  replaceFile(path, `${token}\n`);
  return token;
}

export function readOperatorToken(dataDir: string): string {
  const path = join(dataDir, 'token');
  const token = (readTextSync(path, OWN_FILE) ?? '').trim();
  if (!TOKEN_FORM.test(token)) throw new RequestError('DATA_DIR_UNUSABLE', `${path} holds no token: delete it, and the next parley serve makes one`);
  return token;
}

export function newToken(): string {
  return `prl_${randomBytes(24).toString('base64url')}`;
}
