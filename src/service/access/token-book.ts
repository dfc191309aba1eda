// The tokens that are valid now: those of operators, the named ones and those of other hosts. An added, revoked,
// rotated or expired token is treated as such from the next request. Tokens are found by their SHA-256.
import type { Clock } from '../../kernel/clock.js';
import type { SessionRecord } from '../../store/access-store.js';
import type { Actor } from '../../store/store.js';
import type { OperatorSource } from './operator-token.js';
import { hashToken, type NamedToken, type Role, type TokenSource } from './tokens.js';

export interface Caller {
  readonly actor: Actor;
  readonly role: Role;
  // The token's name; null for the operator token.
  readonly token: string | null;
  readonly tokenHash: string;
  readonly expiresAt: number | null;
  // Another host that shares the database: it may read files of runs, but not sign in.
  readonly isHost: boolean;
  // The browser session; null for a call with the token itself.
  readonly session: SessionRecord | null;
}

export interface TokenBookOptions {
  readonly source: TokenSource;
  readonly operator: OperatorSource;
  readonly userName: string;
  readonly clock: Clock;
  // Called if the tokens cannot be read: then only the operator token is accepted.
  readonly onProblem?: (error: unknown) => void;
  // The SHA-256 of the tokens of other hosts that share the database; they change with the source.
  readonly hosts?: () => readonly string[];
}

export class TokenBook {
  readonly #source: TokenSource;
  readonly #operator: OperatorSource;
  readonly #userName: string;
  readonly #clock: Clock;
  readonly #onProblem: (error: unknown) => void;
  readonly #hosts: () => readonly string[];
  #byHash = new Map<string, Caller>();
  #stamp: string | null = null;
  #isReadInThisTick = false;

  constructor({ source, operator, userName, clock, onProblem = () => {}, hosts = () => [] }: TokenBookOptions) {
    this.#source = source;
    this.#operator = operator;
    this.#userName = userName;
    this.#clock = clock;
    this.#onProblem = onProblem;
    this.#hosts = hosts;
  }

  // With shared tokens, call this first: it reads a change that another host reported.
  async refresh(): Promise<void> {
    await this.#source.refresh?.();
  }

  // With shared tokens, an unknown one is read again before it is refused: another host or a command may just have
  // registered it, and the notification may not have arrived.
  async resolve(token: string): Promise<Caller | null> {
    await this.refresh();
    const caller = this.find(token);
    if (caller !== null || !this.#source.reload) return caller;
    await this.#source.reload();
    return this.find(token);
  }

  find(token: string): Caller | null {
    return this.findByHash(hashToken(token));
  }

  // The caller whose token has this SHA-256, if it is valid now.
  findByHash(sha256: string): Caller | null {
    this.#read();
    return this.#find(sha256);
  }

  #find(sha256: string): Caller | null {
    const caller = this.#byHash.get(sha256) ?? null;
    return caller?.expiresAt != null && caller.expiresAt <= this.#clock.now() ? null : caller;
  }

  // The named token, or for null the server's own operator token.
  findByName(name: string | null): Caller | null {
    this.#read();
    const caller = [...this.#byHash.values()].find((each) => !each.isHost && each.token === name);
    return caller ? this.findByHash(caller.tokenHash) : null;
  }

  // Whether the caller's token is still the same one with the same rights. Called for each frame of each stream, so the
  // tokens are read at most once per event-loop tick.
  knows({ tokenHash, role, actor }: Caller): boolean {
    if (!this.#isReadInThisTick) {
      this.#isReadInThisTick = true;
      setImmediate(() => (this.#isReadInThisTick = false));
      this.#read();
    }
    const caller = this.#find(tokenHash);
    return caller !== null && caller.role === role && caller.actor.name === actor.name;
  }

  #read(): void {
    const stamp = `${this.#source.stamp()} ${this.#operator.stamp()}`;
    if (stamp === this.#stamp) return;
    this.#stamp = stamp;
    const callers = [...this.#list().map(toCaller), ...this.#hosts().map(toHost), ...this.#listOperators()];
    this.#byHash = new Map(callers.map((caller) => [caller.tokenHash, caller]));
  }

  #listOperators(): Caller[] {
    return this.#operator.list().map(({ sha256, user }) => toOperator(sha256, user ?? this.#userName));
  }

  // Never throws: with a damaged file the server keeps working for its operator.
  #list(): readonly NamedToken[] {
    try {
      return this.#source.list();
    } catch (error) {
      this.#onProblem(error);
      return [];
    }
  }
}

const SOMEBODY = { token: null, expiresAt: null, isHost: false, session: null } as const;

function toOperator(tokenHash: string, name: string): Caller {
  return { ...SOMEBODY, actor: { kind: 'user', name }, role: 'operator', tokenHash };
}

function toHost(tokenHash: string): Caller {
  const name = 'another host';
  return { ...SOMEBODY, actor: { kind: 'token', name }, role: 'viewer', token: name, tokenHash, isHost: true };
}

// The person is the actor; the name of the token is added if it differs.
function toCaller({ name, role, sha256, person = name, expires_at: expires }: NamedToken): Caller {
  const actor: Actor = { kind: 'token', name: person, ...(person === name ? {} : { token: name }) };
  return {
    ...SOMEBODY,
    actor,
    role,
    token: name,
    tokenHash: sha256,
    // An unreadable time counts as expired.
    expiresAt: expires === undefined ? null : Date.parse(expires) || 0,
  };
}
