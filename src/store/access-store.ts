// The port for access data: browser sessions, one-time sign-in codes, the last use of tokens, and the administrative
// journal. Secrets are stored as SHA-256 only, so a reader of the database cannot sign in with them.
import type { AuditEntry, AuditReader, AuditType, AuditRow } from './audit.js';
import { isTime } from './stored-shapes.js';

export interface SessionRecord {
  // SHA-256 of the cookie's value.
  readonly sha256: string;
  // Names the session to people; not a secret.
  readonly session_id: string;
  // SHA-256 of the token that signed in. The session is valid only as long as that token is.
  readonly token_sha256: string;
  // The token's name; null for the operator token.
  readonly token: string | null;
  readonly person: string;
  readonly created_at: number;
  readonly last_used_at: number;
  // When it ends at the latest, however often it is used.
  readonly expires_at: number;
  // When it ends if it is not used again.
  readonly ends_at: number;
  readonly address: string | null;
  readonly user_agent: string | null;
}

export interface SignInCode {
  readonly sha256: string;
  readonly token_sha256: string;
  readonly expires_at: number;
}

export interface SessionFilter {
  // Only sessions of this person; by default all.
  readonly person?: string | undefined;
  // Only sessions after this one in the list.
  readonly after?: string | undefined;
  readonly limit: number;
}

export interface TokenUse {
  readonly token_sha256: string;
  readonly used_at: number;
  readonly address: string | null;
}

// The columns of a session, in both databases and in this order.
export const SESSION_COLUMNS =
  'sha256, session_id, token_sha256, token, person, created_at, last_used_at, expires_at, ends_at, address, user_agent';

// A session with damaged times is refused and not listed, so that it does not fail the list; it can still be ended by
// its id.
export function soundSession(row: SessionRecord | undefined): SessionRecord | null {
  return row && [row.created_at, row.last_used_at, row.expires_at, row.ends_at].every(isTime) ? row : null;
}

// Returns up to `limit` sessions, however many damaged ones are skipped.
export async function listSoundSessions(
  filter: SessionFilter,
  list: (filter: SessionFilter) => SessionRecord[] | Promise<SessionRecord[]>,
): Promise<SessionRecord[]> {
  const sessions: SessionRecord[] = [];
  for (let { after } = filter; ;) {
    const rows = await list({ ...filter, after });
    sessions.push(...rows.filter((row) => soundSession(row) !== null));
    if (rows.length < filter.limit || sessions.length >= filter.limit) return sessions.slice(0, filter.limit);
    after = rows.at(-1)?.session_id;
  }
}

// More sessions of one token than this end the oldest.
export const MOST_SESSIONS = 200;
// More open codes than this end the oldest.
export const MOST_CODES = 1000;

export interface AccessStore extends AuditReader {
  // Stores the session and its audit row in one transaction, and drops sessions that have ended.
  createSession(session: SessionRecord, entry: AuditEntry): Promise<void>;
  findSession(sha256: string): Promise<SessionRecord | null>;
  // The same without waiting, for open streams: in PostgreSQL the last known state.
  hasSession(sha256: string): boolean;
  findSessionById(sessionId: string): Promise<SessionRecord | null>;
  // Ordered by session id, which is the order of creation.
  listSessions(filter: SessionFilter): Promise<SessionRecord[]>;
  touchSession(sha256: string, use: { readonly last_used_at: number; readonly ends_at: number }): Promise<void>;
  // False: the session had already ended; then nothing is recorded.
  endSession(sessionId: string, entry: AuditEntry): Promise<boolean>;
  // Drops all sessions, codes and last uses that are bound to a token.
  forgetToken(tokenSha256: string): Promise<void>;
  createCode(code: SignInCode, entry: AuditEntry): Promise<void>;
  // Consumes a code: exactly one of several callers gets it. Null: unknown, used or expired.
  redeemCode(sha256: string, now: number): Promise<SignInCode | null>;
  noteTokenUse(use: TokenUse): Promise<void>;
  listTokenUses(): Promise<TokenUse[]>;
  appendAudit(entry: AuditEntry): Promise<void>;
  // The newest rows of one type, newest first.
  listAuditOfType(type: AuditType, limit: number): Promise<AuditRow[]>;
  // Called when another process has ended sessions or changed tokens. Returns the function that removes the listener.
  onChanged(listener: () => void): () => void;
}
