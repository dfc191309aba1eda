// The operator token of a data directory: created at the first start in a file that only its owner can read, and
// replaced by `parley token rotate --operator`. PARLEY_TOKEN sets another one while the server runs.
import { phrase } from '../../messages/phrase.js';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { createFile, replaceFile } from '../../files/replace-file.js';
import { refusal } from '../../run/request-error.js';
import { hashToken, newToken, stampOf } from './tokens.js';

const TOKEN_FORM = /^[\w.~+/=-]{16,500}$/;
const FILE = 'token';

export interface OperatorToken {
  readonly sha256: string;
  // The owner; null: the account that the server runs as.
  readonly user: string | null;
}

// The source of the operator tokens while the server runs.
export interface OperatorSource {
  // Changes whenever a token may have changed.
  stamp(): string;
  // The server's own token comes first.
  list(): readonly OperatorToken[];
}

export function operatorTokenFile(dataDir: string): string {
  return join(dataDir, FILE);
}

export function operatorToken(dataDir: string): string {
  const path = operatorTokenFile(dataDir);
  // Hosts that share the directory and start at the same time must use the same token.
  if (!existsSync(path)) createFile(path, `${newToken()}\n`);
  return readOperatorToken(dataDir);
}

export function readOperatorToken(dataDir: string): string {
  const path = operatorTokenFile(dataDir);
  const token = (readTextSync(path, OWN_FILE) ?? '').trim();
  if (!TOKEN_FORM.test(token)) throw refusal('DATA_DIR_UNUSABLE.token_file', { file: path });
  return token;
}

export function rotateOperatorToken(dataDir: string): string {
  const token = newToken();
  replaceFile(operatorTokenFile(dataDir), `${token}\n`);
  return token;
}

// Follows the file, so that a rotation takes effect with the next request. If the file is missing or damaged, the last
// token stays valid.
export function operatorIn(dataDir: string): OperatorSource {
  let last = operatorToken(dataDir);
  return {
    stamp: () => stampOf(operatorTokenFile(dataDir)),
    list: () => {
      try {
        last = readOperatorToken(dataDir);
      } catch {
        // The last token stays valid.
      }
      return [{ sha256: hashToken(last), user: null }];
    },
  };
}

export function fixedOperator(token: string): OperatorSource {
  return { stamp: () => '', list: () => [{ sha256: hashToken(token), user: null }] };
}

const LEAST_LENGTH = 32;
const LEAST_BITS = 96;

// Refuses a PARLEY_TOKEN that can be guessed. The message never repeats the value.
export function checkStrength(token: string): void {
  const problem =
    !/^[\w.~+/=-]*$/.test(token) || token.length > 500
      ? phrase('token_form')
      : token.length < LEAST_LENGTH
        ? phrase('token_short', { count: token.length, least: LEAST_LENGTH })
        : estimateBits(token) < LEAST_BITS
          ? phrase('token_guessable')
          : null;
  if (problem !== null) throw refusal('INVALID_ARGUMENT.weak_token', { problem });
}

// A low estimate of how hard a text is to guess: from how evenly its characters and the steps between them are
// distributed, and from how much of it does not repeat earlier pairs.
export function estimateBits(text: string): number {
  const codes = [...text].map((char) => char.charCodeAt(0));
  const steps = codes.slice(1).map((code, index) => code - (codes[index] ?? 0));
  const pairs = new Set(codes.slice(1).map((code, index) => `${codes[index]} ${code}`));
  return (pairs.size + 1) * Math.min(entropyOf(codes), entropyOf(steps));
}

function entropyOf(values: readonly number[]): number {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return -[...counts.values()].reduce(
    (sum, count) => sum + (count / values.length) * Math.log2(count / values.length),
    0,
  );
}
