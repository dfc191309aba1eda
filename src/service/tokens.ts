// Who may do what: the operator, and those whose tokens were given a name and a role. Of theirs only the hashes are kept.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { replaceFile } from '../files/replace-file.js';
import { OWN_FILE, readTextSync } from '../files/read-file.js';
import { createCheck } from '../kernel/validator.js';
import { RequestError } from '../run/request-error.js';
import type { Actor } from '../store/store.js';
import { newToken } from './operator-token.js';

export const ROLES = ['viewer', 'replier', 'operator'] as const;
export type Role = (typeof ROLES)[number];

export interface Caller {
  readonly actor: Actor;
  readonly role: Role;
}

export interface NamedToken {
  readonly name: string;
  readonly role: Role;
  readonly sha256: string;
  readonly created_at: string;
}

const FILE = 'tokens.json';
export const TOKENS_SCHEMA = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['name', 'role', 'sha256', 'created_at'],
    properties: { name: { type: 'string', minLength: 1, maxLength: 100 }, role: { enum: ROLES }, sha256: { type: 'string', pattern: '^[0-9a-f]{64}$' }, created_at: { type: 'string' } },
  },
} as const;
const explain = createCheck(TOKENS_SCHEMA, 'tokens');

export function listTokens(dataDir: string): readonly NamedToken[] {
  const path = join(dataDir, FILE);
  if (!existsSync(path)) return [];
  let found: unknown;
  try {
    found = JSON.parse(readTextSync(path, OWN_FILE) ?? '[]');
  } catch (error) {
    throw new RequestError('DATA_DIR_UNUSABLE', `${path} cannot be read: ${(error as Error).message}`);
  }
  const problem = explain(found);
  if (problem !== null) throw new RequestError('DATA_DIR_UNUSABLE', `${path}: ${problem}`);
  return found as NamedToken[];
}

// The token itself is told once and not kept.
export function makeToken(name: string, role: Role, now: string): { readonly token: string; readonly named: NamedToken } {
  if (!/^[\w.@ -]{1,100}$/.test(name)) throw new RequestError('INVALID_ARGUMENT', `a token's name has letters, digits, spaces and . _ - @, at most a hundred, not "${name}"`);
  const token = newToken();
  return { token, named: { name, role, sha256: hashOf(token).toString('hex'), created_at: now } };
}

export function addToken(dataDir: string, name: string, role: Role, now: string): string {
  const tokens = listTokens(dataDir);
  const { token, named } = makeToken(name, role, now);
  if (tokens.some((each) => each.name === name)) throw nameTaken(name);
  replaceFile(join(dataDir, FILE), toText([...tokens, named]));
  return token;
}

export function removeToken(dataDir: string, name: string): void {
  const tokens = listTokens(dataDir);
  if (!tokens.some((token) => token.name === name)) throw nameUnknown(name);
  replaceFile(join(dataDir, FILE), toText(tokens.filter((token) => token.name !== name)));
}

export function nameTaken(name: string): RequestError {
  return new RequestError('INVALID_ARGUMENT', `there is a token "${name}" already; remove it first`);
}

export function nameUnknown(name: string): RequestError {
  return new RequestError('INVALID_ARGUMENT', `there is no token "${name}"`);
}

// Whose token it is.
export function findNamed(tokens: readonly NamedToken[], token: string): NamedToken | undefined {
  const hash = hashOf(token).toString('hex');
  return tokens.find(({ sha256 }) => sha256 === hash);
}

function toText(tokens: readonly NamedToken[]): string {
  return `${JSON.stringify(tokens, null, 2)}\n`;
}

// Where named tokens are found.
export interface TokenSource {
  // Another one when they may have changed.
  stamp(): string;
  list(): readonly NamedToken[];
}

// One that was added or removed counts from the next request on.
export function tokensIn(dataDir: string): TokenSource {
  return {
    stamp: () => {
      try {
        const stat = statSync(join(dataDir, FILE), { throwIfNoEntry: false });
        return stat ? `${stat.ino} ${stat.mtimeMs} ${stat.size}` : '';
      } catch {
        return 'unreadable';
      }
    },
    list: () => listTokens(dataDir),
  };
}

// Knows the tokens as they are now.
export class TokenBook {
  readonly #source: TokenSource;
  readonly #operator: { readonly hash: Buffer; readonly caller: Caller };
  readonly #hosts: readonly { readonly hash: Buffer; readonly caller: Caller }[];
  #named: readonly { readonly hash: Buffer; readonly caller: Caller }[] = [];
  #stamp = '';
  readonly #onProblem: (error: unknown) => void;

  // `onProblem` is told of tokens that cannot be read: then nobody but the operator is known.
  // `hosts` is the token of the other hosts, which may look.
  constructor(source: TokenSource, operator: { readonly token: string; readonly userName: string }, onProblem: (error: unknown) => void = () => {}, hosts: string | null = null) {
    this.#source = source;
    this.#onProblem = onProblem;
    this.#hosts = hosts === null ? [] : [{ hash: hashOf(hosts), caller: { actor: { kind: 'token', name: 'another host' }, role: 'viewer' } }];
    this.#operator = { hash: hashOf(operator.token), caller: { actor: { kind: 'user', name: operator.userName }, role: 'operator' } };
  }

  // Compared by their hashes, each to its end.
  find(token: string): Caller | null {
    const hash = hashOf(token);
    this.#refresh();
    let found: Caller | null = null;
    for (const known of [this.#operator, ...this.#hosts, ...this.#named]) if (timingSafeEqual(known.hash, hash)) found = known.caller;
    return found;
  }

  // By what a browser was given in place of the token.
  findSignedIn(session: string): Caller | null {
    this.#refresh();
    const given = hashOf(session);
    let found: Caller | null = null;
    for (const known of [this.#operator, ...this.#named]) if (timingSafeEqual(hashOf(sessionOf(known.hash)), given)) found = known.caller;
    return found;
  }

  // Whether this is still somebody who was found.
  knows(caller: Caller): boolean {
    this.#refresh();
    return caller === this.#operator.caller || [...this.#hosts, ...this.#named].some((known) => known.caller === caller);
  }

  #refresh(): void {
    const stamp = this.#source.stamp();
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    const before = new Map(this.#named.map((known) => [keyOf(known.hash.toString('hex'), known.caller.actor.name, known.caller.role), known]));
    this.#named = this.#list().map(({ name, role, sha256 }) => before.get(keyOf(sha256, name, role)) ?? { hash: Buffer.from(sha256, 'hex'), caller: { actor: { kind: 'token', name }, role } });
  }

  // Never throws: a server with a damaged file goes on for its operator.
  #list(): readonly NamedToken[] {
    try {
      return this.#source.list();
    } catch (error) {
      this.#onProblem(error);
      return [];
    }
  }
}

// What stands in the cookie of a browser: made from the token, good for nothing but being that cookie.
export function sessionFor(token: string): string {
  return sessionOf(hashOf(token));
}

function sessionOf(hash: Buffer): string {
  return createHmac('sha256', hash).update('parley browser session').digest('base64url');
}

function keyOf(sha256: string, name: string, role: Role): string {
  return `${sha256} ${role} ${name}`;
}

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
