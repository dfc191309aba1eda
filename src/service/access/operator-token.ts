// The operator's token of a data directory: made at the first start, in a file that only its owner can read, and
// replaced by `parley token rotate --operator`. PARLEY_TOKEN sets another one for as long as the server runs.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { createFile, replaceFile } from '../../files/replace-file.js';
import { RequestError } from '../../run/request-error.js';
import { hashToken, newToken, stampOf } from './tokens.js';

const TOKEN_FORM = /^[\w.~+/=-]{16,500}$/;
const FILE = 'token';

export interface OperatorToken {
  readonly sha256: string;
  // Whose it is; null: the account that the server runs as.
  readonly user: string | null;
}

// Where the operator tokens are found while the server runs.
export interface OperatorSource {
  // Changes whenever a token may have changed.
  stamp(): string;
  // The server's own comes first.
  list(): readonly OperatorToken[];
}

export function operatorToken(dataDir: string): string {
  const path = join(dataDir, FILE);
  // Of hosts that share the directory and start at once, all must use the same.
  if (!existsSync(path)) createFile(path, `${newToken()}\n`);
  return readOperatorToken(dataDir);
}

export function readOperatorToken(dataDir: string): string {
  const path = join(dataDir, FILE);
  const token = (readTextSync(path, OWN_FILE) ?? '').trim();
  if (!TOKEN_FORM.test(token))
    throw new RequestError(
      'DATA_DIR_UNUSABLE',
      `${path} holds no token: delete it, and the next parley serve makes one`,
    );
  return token;
}

export function rotateOperatorToken(dataDir: string): string {
  const token = newToken();
  replaceFile(join(dataDir, FILE), `${token}\n`);
  return token;
}

// Follows the file, so that a rotation takes effect with the next request. A file that is missing or damaged leaves the
// last token in place.
export function operatorIn(dataDir: string): OperatorSource {
  let last = operatorToken(dataDir);
  return {
    stamp: () => stampOf(join(dataDir, FILE)),
    list: () => {
      try {
        last = readOperatorToken(dataDir);
      } catch {
        // The last one stays valid.
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
      ? 'it may have letters, digits and . _ ~ + / = - only, at most 500'
      : token.length < LEAST_LENGTH
        ? `it has ${token.length} characters, and ${LEAST_LENGTH} are the least`
        : estimateBits(token) < LEAST_BITS
          ? 'it repeats itself or follows a pattern'
          : null;
  if (problem !== null)
    throw new RequestError(
      'INVALID_ARGUMENT',
      `PARLEY_TOKEN is too easy to guess: ${problem}. Make one: PARLEY_TOKEN=$(openssl rand -hex 32)`,
    );
}

// A low estimate of how hard a text is to guess: by how evenly its characters and the steps between them are spread,
// and by how much of it is not a repetition of pairs that came before.
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
