// Browser sessions and one-time sign-in codes. Both are random secrets that are stored as SHA-256 only, and both are
// bound to the token that they were made with: when it is revoked, rotated or expires, they are refused from the next
// request on.
import { createHash, randomBytes } from 'node:crypto';
import { monotonicFactory } from 'ulid';
import type { Clock } from '../../kernel/clock.js';
import type { AccessStore, SessionFilter, SessionRecord } from '../../store/access-store.js';
import type { AuditTrace } from '../../store/audit.js';
import type { Caller, TokenBook } from './token-book.js';

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
// The maximum age of a session, and how long it may stay unused.
export const SESSION_MS = 30 * DAY;
export const IDLE_MS = 7 * DAY;
export const CODE_MS = 10 * MINUTE;
export const SESSION_ID = /^ses_[0-9A-HJKMNP-TV-Z]{26}$/;
// Last uses are stored at most this often.
const USE_MS = MINUTE;
const MOST_REMEMBERED = 10_000;
const AGENT_CHARS = 200;

export interface SessionsDeps {
  readonly access: AccessStore;
  readonly tokens: TokenBook;
  readonly clock: Clock;
  // Called when the last use could not be stored; no request waits for that.
  readonly onFailure: (error: unknown) => void;
}

export interface SignIn {
  readonly by: 'token' | 'code';
  readonly address: string;
  readonly userAgent: string | null;
}

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #ulid = monotonicFactory();
  // When the last use of a token or session was stored.
  readonly #noted = new Map<string, number>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  // The secret goes into the cookie and is stored nowhere.
  async signIn(
    { actor, token, tokenHash, expiresAt }: Caller,
    { by, address, userAgent }: SignIn,
  ): Promise<{ readonly secret: string; readonly session: SessionRecord }> {
    const now = this.#deps.clock.now();
    const secret = `prs_${randomBytes(32).toString('base64url')}`;
    const expires = Math.min(now + SESSION_MS, expiresAt ?? Infinity);
    const agent = userAgent?.slice(0, AGENT_CHARS) ?? null;
    const session: SessionRecord = {
      sha256: hashOf(secret),
      session_id: `ses_${this.#ulid(now)}`,
      token_sha256: tokenHash,
      token,
      person: actor.name,
      created_at: now,
      last_used_at: now,
      expires_at: expires,
      ends_at: Math.min(expires, now + IDLE_MS),
      address,
      user_agent: agent,
    };
    await this.#deps.access.createSession(session, {
      at: now,
      actor,
      address,
      type: 'sign_in',
      body: { session_id: session.session_id, by, user_agent: agent, expires_at: expires },
    });
    return { secret, session };
  }

  async find(secret: string): Promise<Caller | null> {
    const session = await this.#deps.access.findSession(hashOf(secret));
    if (!session || session.ends_at <= this.#deps.clock.now()) return null;
    const caller = this.#deps.tokens.findByHash(session.token_sha256);
    return caller && !caller.isHost ? { ...caller, session } : null;
  }

  // Whether the caller may still be served, for streams that stay open.
  isLive(caller: Caller): boolean {
    const { session } = caller;
    if (!this.#deps.tokens.knows(caller)) return false;
    return (
      session === null || (session.expires_at > this.#deps.clock.now() && this.#deps.access.hasSession(session.sha256))
    );
  }

  async end(sessionId: string, trace: AuditTrace, type: 'sign_out' | 'session.ended'): Promise<boolean> {
    return this.#deps.access.endSession(sessionId, { ...trace, type, body: { session_id: sessionId } });
  }

  findById(sessionId: string): Promise<SessionRecord | null> {
    return this.#deps.access.findSessionById(sessionId);
  }

  // Lists the sessions that are still valid.
  async list(
    filter: SessionFilter,
  ): Promise<{ readonly sessions: readonly SessionRecord[]; readonly next: string | null }> {
    const rows = await this.#deps.access.listSessions(filter);
    const now = this.#deps.clock.now();
    const sessions = rows.filter(
      ({ ends_at: ends, token_sha256: hash }) => ends > now && this.#deps.tokens.findByHash(hash) !== null,
    );
    return { sessions, next: rows.length < filter.limit ? null : (rows.at(-1)?.session_id ?? null) };
  }

  // Creates a code that signs one browser in as this caller.
  async createCode(
    as: Caller,
    lifeMs: number,
    trace: AuditTrace,
  ): Promise<{ readonly code: string; readonly expiresAt: number }> {
    const code = `prc_${randomBytes(24).toString('base64url')}`;
    const expiresAt = Math.min(trace.at + lifeMs, as.expiresAt ?? Infinity);
    await this.#deps.access.createCode(
      { sha256: hashOf(code), token_sha256: as.tokenHash, expires_at: expiresAt },
      {
        ...trace,
        type: 'code.created',
        body: { person: as.actor.name, token: as.token, role: as.role, expires_at: expiresAt },
      },
    );
    return { code, expiresAt };
  }

  // Consumes the code. Null: it is unknown, used, expired, or its token is no longer valid.
  async redeem(code: string): Promise<Caller | null> {
    const redeemed = await this.#deps.access.redeemCode(hashOf(code), this.#deps.clock.now());
    const caller = redeemed && this.#deps.tokens.findByHash(redeemed.token_sha256);
    return caller && !caller.isHost ? caller : null;
  }

  // Stores when the token and the session were last used, at most once a minute; the request does not wait for it.
  noteUse({ tokenHash, session, isHost }: Caller, address: string): void {
    const now = this.#deps.clock.now();
    const { access, onFailure } = this.#deps;
    if (isHost) return;
    if (this.#isDue(tokenHash, now))
      access.noteTokenUse({ token_sha256: tokenHash, used_at: now, address }).catch(onFailure);
    if (session && now - session.last_used_at >= USE_MS && this.#isDue(session.sha256, now)) {
      access
        .touchSession(session.sha256, { last_used_at: now, ends_at: Math.min(session.expires_at, now + IDLE_MS) })
        .catch(onFailure);
    }
  }

  #isDue(key: string, now: number): boolean {
    const last = this.#noted.get(key);
    if (last !== undefined && now - last < USE_MS && now >= last) return false;
    this.#noted.delete(key);
    this.#noted.set(key, now);
    if (this.#noted.size > MOST_REMEMBERED) this.#noted.delete(this.#noted.keys().next().value ?? '');
    return true;
  }
}

function hashOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}
