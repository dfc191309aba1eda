// Named tokens of a data directory, in tokens.json: each has a name, the person it belongs to, a role and optionally an
// expiry. Only hashes are stored, so somebody who reads the file cannot use the tokens.
import { formText } from '../../messages/forms.js';
import { phrase } from '../../messages/phrase.js';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../../files/replace-file.js';
import { OWN_FILE, readTextSync } from '../../files/read-file.js';
import { createCheck } from '../../messages/validator.js';
import { refusal, type RequestError } from '../../run/request-error.js';
import { explainReason } from '../../messages/system-reason.js';

export const ROLES = ['viewer', 'replier', 'operator'] as const;
export type Role = (typeof ROLES)[number];

// The optional properties of a token.
export interface TokenDetails {
  // The person that journals name as the owner; the name of the token if absent. A person may have several tokens.
  readonly person?: string | undefined;
  readonly expires_at?: string | undefined;
}

export interface NewToken extends TokenDetails {
  readonly role: Role;
  // The time of creation, as a timestamp.
  readonly now: string;
}

export interface NamedToken extends TokenDetails {
  readonly name: string;
  readonly role: Role;
  readonly sha256: string;
  readonly created_at: string;
}

const FILE = 'tokens.json';
// The names of the operator token and of the tokens of other hosts in lists and journals.
const RESERVED: ReadonlySet<string> = new Set(['operator', 'another host']);
const NAME_FORM = /^[\w.@ -]{1,100}$/;
export const TOKENS_SCHEMA = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'role', 'sha256', 'created_at'],
    properties: {
      name: { type: 'string', minLength: 1, maxLength: 100 },
      role: { enum: ROLES },
      sha256: { type: 'string', pattern: '^[0-9a-f]{64}$', description: formText('hex_digits') },
      created_at: { type: 'string' },
      person: { type: 'string', minLength: 1, maxLength: 100 },
      expires_at: { type: 'string', pattern: '^\\d{4}-\\d{2}-\\d{2}T', description: formText('iso_time') },
    },
  },
} as const;
const explain = createCheck(TOKENS_SCHEMA, phrase('tokens'));

export function listTokens(dataDir: string): readonly NamedToken[] {
  const path = join(dataDir, FILE);
  if (!existsSync(path)) return [];
  const tokens = parse(path, readFile(path));
  const problem = explain(tokens);
  if (problem !== null) throw refusal('DATA_DIR_UNUSABLE.tokens_invalid', { file: path, problem, ways_out: WAYS_OUT });
  return tokens as NamedToken[];
}

const WAYS_OUT = phrase('tokens_ways_out');

function readFile(path: string): string {
  try {
    return readTextSync(path, OWN_FILE) ?? '[]';
  } catch (error) {
    throw refusal('DATA_DIR_UNUSABLE.tokens_unreadable', { file: path, reason: explainReason(error) });
  }
}

function parse(path: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw refusal('DATA_DIR_UNUSABLE.tokens_not_json', {
      file: path,
      ways_out: WAYS_OUT,
      reason: (error as Error).message,
    });
  }
}

// The caller must show the token to the person now: only its hash is stored.
export function makeToken(
  name: string,
  { role, now, person, expires_at: expires }: NewToken,
): { readonly token: string; readonly named: NamedToken } {
  for (const [what, text] of [
    [phrase('name_of_token'), name],
    [phrase('person_of_token'), person ?? name],
  ] as const) {
    if (!NAME_FORM.test(text))
      throw refusal('INVALID_ARGUMENT.token_name', { field: what, value: JSON.stringify(text) });
  }
  if (RESERVED.has(name.toLowerCase())) throw refusal('INVALID_ARGUMENT.token_reserved', { name });
  const token = newToken();
  return {
    token,
    named: {
      name,
      role,
      sha256: hashToken(token),
      created_at: now,
      ...(person === undefined ? {} : { person }),
      ...(expires === undefined ? {} : { expires_at: expires }),
    },
  };
}

export function addToken(dataDir: string, name: string, options: NewToken): string {
  const { token, named } = makeToken(name, options);
  storeToken(dataDir, named);
  return token;
}

export function storeToken(dataDir: string, named: NamedToken): void {
  const tokens = listTokens(dataDir);
  if (tokens.some(({ name }) => name === named.name)) throw nameTaken(named.name);
  replaceFile(join(dataDir, FILE), toText([...tokens, named]));
}

// The previous value of the token becomes invalid immediately.
export function replaceToken(dataDir: string, named: NamedToken): void {
  replaceFile(
    join(dataDir, FILE),
    toText(listTokens(dataDir).map((token) => (token.name === named.name ? named : token))),
  );
}

export function removeToken(dataDir: string, name: string): void {
  const tokens = listTokens(dataDir);
  if (!tokens.some((token) => token.name === name)) throw nameUnknown(name);
  replaceFile(join(dataDir, FILE), toText(tokens.filter((token) => token.name !== name)));
}

export function nameTaken(name: string): RequestError {
  return refusal('INVALID_ARGUMENT.token_exists', { name });
}

export function nameUnknown(name: string): RequestError {
  return refusal('INVALID_ARGUMENT.token_unknown', { name });
}

export function findNamed(tokens: readonly NamedToken[], token: string): NamedToken | undefined {
  const hash = hashToken(token);
  return tokens.find(({ sha256 }) => sha256 === hash);
}

function toText(tokens: readonly NamedToken[]): string {
  return `${JSON.stringify(tokens, null, 2)}\n`;
}

// The source of named tokens.
export interface TokenSource {
  // Changes whenever the tokens may have changed.
  stamp(): string;
  list(): readonly NamedToken[];
  // Resolves when a reported change has been read.
  refresh?(): Promise<void>;
  // Reads all tokens again, at most a few times per second.
  reload?(): Promise<void>;
}

// A token that is added or removed takes effect with the next request.
export function tokensIn(dataDir: string): TokenSource {
  return { stamp: () => stampOf(join(dataDir, FILE)), list: () => listTokens(dataDir) };
}

export function stampOf(path: string): string {
  try {
    const stat = statSync(path, { throwIfNoEntry: false });
    return stat ? `${stat.ino} ${stat.mtimeMs} ${stat.size}` : '';
  } catch {
    return 'unreadable';
  }
}

export function hashToken(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

export function newToken(): string {
  return `prl_${randomBytes(24).toString('base64url')}`;
}
