// The operator's token: made at the first start, the same ever after, in a file that only its owner can read.
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function operatorToken(dataDir: string): string {
  const path = join(dataDir, 'token');
  if (existsSync(path)) return readOperatorToken(dataDir);
  const token = newToken();
  replacePrivate(path, `${token}\n`);
  return token;
}

export function readOperatorToken(dataDir: string): string {
  return readFileSync(join(dataDir, 'token'), 'utf8').trim();
}

export function newToken(): string {
  return `prl_${randomBytes(24).toString('base64url')}`;
}

export function replacePrivate(path: string, text: string): void {
  writeFileSync(`${path}.new`, text, { mode: 0o600 });
  renameSync(`${path}.new`, path);
}
