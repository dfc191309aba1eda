// Sessions, sign-in codes, token uses and the administrative journal in PostgreSQL, shared by all hosts. Lookups of
// sessions are cached for two seconds; every change notifies all hosts, which then read again before the next request.
import { phrase } from '../../../messages/phrase.js';
import {
  listSoundSessions,
  MOST_CODES,
  MOST_SESSIONS,
  SESSION_COLUMNS,
  soundSession,
  type AccessStore,
  type SessionFilter,
  type SessionRecord,
  type SignInCode,
  type TokenUse,
} from '../../access-store.js';
import { unrecorded, type AuditEntry, type AuditHead, type AuditRow, type AuditType } from '../../audit.js';
import { listAudit, listAuditOfType, readAuditHead, transactAudited, transactRevoking } from './audit.js';
import { isTime } from '../../stored-shapes.js';
import { ACCESS_CHANNEL } from '../connection/compose.js';
import type { Statement } from '../connection/database.js';
import type { PostgresStore } from '../postgres-store.js';
import { SessionCache } from './session-cache.js';
import { toText } from '../connection/text.js';

export const NOTIFY_ACCESS: Statement = {
  name: 'notify-access',
  text: `SELECT pg_notify('${ACCESS_CHANNEL}', '')`,
  values: [],
};

export class PostgresAccess implements AccessStore {
  readonly #store: PostgresStore;
  readonly #cache: SessionCache;

  constructor(store: PostgresStore, monotonicMs: () => number = () => performance.now()) {
    this.#store = store;
    this.#cache = new SessionCache((sha256) => this.#load(sha256), monotonicMs);
    store.onAccessChanged(() => this.#cache.doubt());
  }

  get #db() {
    return this.#store.database;
  }

  async createSession(session: SessionRecord, entry: AuditEntry): Promise<void> {
    const {
      sha256,
      session_id: id,
      token_sha256: tokenHash,
      token,
      person,
      created_at: at,
      last_used_at: used,
      expires_at: expires,
      ends_at: ends,
      address,
      user_agent: agent,
    } = session;
    await transactAudited<void>(this.#db, [], () => ({
      write: [
        { name: 'drop-ended-sessions', text: 'DELETE FROM parley.sessions WHERE ends_at <= $1', values: [at] },
        {
          name: 'drop-oldest-sessions',
          text: `DELETE FROM parley.sessions WHERE sha256 IN
            (SELECT sha256 FROM parley.sessions WHERE token_sha256 = $1 ORDER BY created_at DESC OFFSET $2)`,
          values: [tokenHash, MOST_SESSIONS - 1],
        },
        {
          name: 'create-session',
          text: `INSERT INTO parley.sessions (${SESSION_COLUMNS})
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
          values: [
            sha256,
            id,
            tokenHash,
            token,
            person,
            at,
            used,
            expires,
            ends,
            address,
            agent === null ? null : toText(agent),
          ],
        },
      ],
      answer: undefined,
      entry,
    }));
  }

  findSession(sha256: string): Promise<SessionRecord | null> {
    return this.#cache.find(sha256);
  }

  hasSession(sha256: string): boolean {
    return this.#cache.has(sha256);
  }

  async #load(sha256: string): Promise<SessionRecord | null> {
    const [row] = await this.#db.read<SessionRecord>({
      name: 'find-session',
      text: `SELECT ${SESSION_COLUMNS} FROM parley.sessions WHERE sha256 = $1`,
      values: [sha256],
    });
    return soundSession(row);
  }

  async findSessionById(sessionId: string): Promise<SessionRecord | null> {
    const [row] = await this.#db.read<SessionRecord>({
      name: 'find-session-by-id',
      text: `SELECT ${SESSION_COLUMNS} FROM parley.sessions WHERE session_id = $1`,
      values: [sessionId],
    });
    return soundSession(row);
  }

  listSessions(filter: SessionFilter): Promise<SessionRecord[]> {
    return listSoundSessions(filter, (page) => this.#listSessions(page));
  }

  #listSessions({ person, after = '', limit }: SessionFilter): Promise<SessionRecord[]> {
    if (person === undefined)
      return this.#db.read<SessionRecord>({
        name: 'list-sessions',
        text: `SELECT ${SESSION_COLUMNS} FROM parley.sessions WHERE session_id > $1 ORDER BY session_id LIMIT $2`,
        values: [after, limit],
      });
    const text = `SELECT ${SESSION_COLUMNS} FROM parley.sessions WHERE person = $1 AND session_id > $2
      ORDER BY session_id LIMIT $3`;
    return this.#db.read<SessionRecord>({ name: 'list-sessions-of', text, values: [person, after, limit] });
  }

  async touchSession(
    sha256: string,
    { last_used_at: used, ends_at: ends }: { readonly last_used_at: number; readonly ends_at: number },
  ): Promise<void> {
    const text = `UPDATE parley.sessions SET last_used_at = GREATEST(last_used_at, $2), ends_at = GREATEST(ends_at, $3)
       WHERE sha256 = $1`;
    await this.#db.write({ name: 'touch-session', text, values: [sha256, used, ends] });
  }

  async endSession(sessionId: string, entry: AuditEntry): Promise<boolean> {
    const { answer: isEnded, problem } = await transactRevoking<boolean>(
      this.#db,
      [
        {
          name: 'end-session',
          text: 'DELETE FROM parley.sessions WHERE session_id = $1 RETURNING sha256',
          values: [sessionId],
        },
      ],
      (gone) => {
        if (gone?.rows.length !== 1) return { leave: false };
        return { write: [NOTIFY_ACCESS], answer: true, entry };
      },
    );
    this.#cache.forget(({ session_id: id }) => id === sessionId);
    if (problem !== null) throw unrecorded(phrase('session_ended', { session: sessionId }), problem);
    return isEnded;
  }

  async forgetToken(tokenSha256: string): Promise<void> {
    await this.#db.transact<void>([], () => ({
      write: [...forgetTokenStatements(tokenSha256), NOTIFY_ACCESS],
      answer: undefined,
    }));
    this.#cache.forget(({ token_sha256: hash }) => hash === tokenSha256);
  }

  async createCode(
    { sha256, token_sha256: tokenHash, expires_at: expires }: SignInCode,
    entry: AuditEntry,
  ): Promise<void> {
    await transactAudited<void>(this.#db, [], () => ({
      write: [
        {
          name: 'drop-expired-codes',
          text: 'DELETE FROM parley.sign_in_codes WHERE expires_at <= $1',
          values: [entry.at],
        },
        {
          name: 'drop-oldest-codes',
          text: `DELETE FROM parley.sign_in_codes WHERE sha256 IN
            (SELECT sha256 FROM parley.sign_in_codes ORDER BY expires_at DESC OFFSET $1)`,
          values: [MOST_CODES - 1],
        },
        {
          name: 'create-code',
          text: 'INSERT INTO parley.sign_in_codes (sha256, token_sha256, expires_at) VALUES ($1, $2, $3)',
          values: [sha256, tokenHash, expires],
        },
      ],
      answer: undefined,
      entry,
    }));
  }

  async redeemCode(sha256: string, now: number): Promise<SignInCode | null> {
    const [code] = await this.#db.write<SignInCode>({
      name: 'redeem-code',
      text: 'DELETE FROM parley.sign_in_codes WHERE sha256 = $1 RETURNING sha256, token_sha256, expires_at',
      values: [sha256],
    });
    return code && isTime(code.expires_at) && code.expires_at > now ? code : null;
  }

  async noteTokenUse({ token_sha256: hash, used_at: at, address }: TokenUse): Promise<void> {
    const text = `INSERT INTO parley.token_uses (token_sha256, used_at, address) VALUES ($1, $2, $3)
      ON CONFLICT (token_sha256) DO UPDATE SET used_at = EXCLUDED.used_at, address = EXCLUDED.address
      WHERE token_uses.used_at < EXCLUDED.used_at`;
    await this.#db.write({ name: 'note-token-use', text, values: [hash, at, address] });
  }

  async listTokenUses(): Promise<TokenUse[]> {
    const rows = await this.#db.read<TokenUse>({
      name: 'list-token-uses',
      text: 'SELECT token_sha256, used_at, address FROM parley.token_uses',
      values: [],
    });
    return rows.filter(({ used_at: at }) => isTime(at));
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    await transactAudited<void>(this.#db, [], () => ({ write: [], answer: undefined, entry }));
  }

  listAudit(after: number, limit: number): Promise<AuditRow[]> {
    return listAudit(this.#db, after, limit);
  }

  listAuditOfType(type: AuditType, limit: number): Promise<AuditRow[]> {
    return listAuditOfType(this.#db, type, limit);
  }

  auditHead(): Promise<AuditHead | null> {
    return readAuditHead(this.#db);
  }

  onChanged(listener: () => void): () => void {
    return this.#store.onAccessChanged(listener);
  }
}

export function forgetTokenStatements(tokenSha256: string): Statement[] {
  return ['sessions', 'sign_in_codes', 'token_uses'].map((table) => ({
    name: `forget-${table}`,
    text: `DELETE FROM parley.${table} WHERE token_sha256 = $1`,
    values: [tokenSha256],
  }));
}
