// Sessions, sign-in codes, token uses and the administrative journal in the SQLite file of a data directory. A lookup
// is one indexed read without a cache, so a session that another process has ended is refused from the next request on.
import { phrase } from '../../messages/phrase.js';
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
} from '../access-store.js';
import {
  MOST_ROWS,
  nextAuditRows,
  toAuditHead,
  unrecorded,
  type AuditEntry,
  type AuditHead,
  type AuditRow,
  type AuditType,
} from '../audit.js';
import { isTime } from '../stored-shapes.js';
import type { Database, Statement } from './open-database.js';
import type { Writes } from './commits/writes.js';

const AUDIT = 'seq, ts, type, actor_json, address, body_json, digest';

export class SqliteAccess implements AccessStore {
  readonly #db: Database;
  readonly #writes: Writes;
  // Prepared once: it is run for every request of a browser, and for every frame of its streams.
  #bySecret: Statement | null = null;

  // The database is open and migrated, and all writes of its connection share a queue, because each transaction decides
  // how it is synced.
  constructor(db: Database, writes: Writes) {
    this.#db = db;
    this.#writes = writes;
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
    await this.#writes.add(() => {
      this.#db.prepare('DELETE FROM sessions WHERE ends_at <= ?').run(at);
      this.#db
        .prepare(
          `DELETE FROM sessions WHERE sha256 IN
            (SELECT sha256 FROM sessions WHERE token_sha256 = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)`,
        )
        .run(tokenHash, MOST_SESSIONS - 1);
      this.#db
        .prepare(`INSERT INTO sessions (${SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
        .run(sha256, id, tokenHash, token, person, at, used, expires, ends, address, agent);
      appendAudit(this.#db, entry);
    });
  }

  async findSession(sha256: string): Promise<SessionRecord | null> {
    return this.#find(sha256);
  }

  hasSession(sha256: string): boolean {
    return this.#find(sha256) !== null;
  }

  async findSessionById(sessionId: string): Promise<SessionRecord | null> {
    const row = this.#db.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE session_id = ?`).get(sessionId);
    return soundSession(row as SessionRecord | undefined);
  }

  #find(sha256: string): SessionRecord | null {
    this.#bySecret ??= this.#db.prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE sha256 = ?`);
    return soundSession(this.#bySecret.get(sha256) as SessionRecord | undefined);
  }

  listSessions(filter: SessionFilter): Promise<SessionRecord[]> {
    return listSoundSessions(filter, (page) => this.#listSessions(page));
  }

  #listSessions({ person, after = '', limit }: SessionFilter): SessionRecord[] {
    const rows =
      person === undefined
        ? this.#db
            .prepare(`SELECT ${SESSION_COLUMNS} FROM sessions WHERE session_id > ? ORDER BY session_id LIMIT ?`)
            .all(after, limit)
        : this.#db
            .prepare(
              `SELECT ${SESSION_COLUMNS} FROM sessions WHERE person = ? AND session_id > ? ORDER BY session_id LIMIT ?`,
            )
            .all(person, after, limit);
    return rows as unknown as SessionRecord[];
  }

  async touchSession(
    sha256: string,
    { last_used_at: used, ends_at: ends }: { readonly last_used_at: number; readonly ends_at: number },
  ): Promise<void> {
    await this.#writes.add(() =>
      this.#db.prepare('UPDATE sessions SET last_used_at = ?, ends_at = ? WHERE sha256 = ?').run(used, ends, sha256),
    );
  }

  async endSession(sessionId: string, entry: AuditEntry): Promise<boolean> {
    const { isEnded, problem } = await this.#writes.add(() => {
      if (Number(this.#db.prepare('DELETE FROM sessions WHERE session_id = ?').run(sessionId).changes) === 0)
        return { isEnded: false, problem: null };
      // The session ends even if that cannot be recorded.
      try {
        appendAudit(this.#db, entry);
        return { isEnded: true, problem: null };
      } catch (error) {
        return { isEnded: true, problem: error };
      }
    });
    if (problem !== null) throw unrecorded(phrase('session_ended', { session: sessionId }), problem);
    return isEnded;
  }

  async forgetToken(tokenSha256: string): Promise<void> {
    await this.#writes.add(() => {
      for (const table of ['sessions', 'sign_in_codes', 'token_uses'])
        this.#db.prepare(`DELETE FROM ${table} WHERE token_sha256 = ?`).run(tokenSha256);
    });
  }

  async createCode(
    { sha256, token_sha256: tokenHash, expires_at: expires }: SignInCode,
    entry: AuditEntry,
  ): Promise<void> {
    await this.#writes.add(() => {
      this.#db.prepare('DELETE FROM sign_in_codes WHERE expires_at <= ?').run(entry.at);
      this.#db
        .prepare(
          `DELETE FROM sign_in_codes WHERE sha256 IN
            (SELECT sha256 FROM sign_in_codes ORDER BY expires_at DESC LIMIT -1 OFFSET ?)`,
        )
        .run(MOST_CODES - 1);
      this.#db
        .prepare('INSERT INTO sign_in_codes (sha256, token_sha256, expires_at) VALUES (?, ?, ?)')
        .run(sha256, tokenHash, expires);
      appendAudit(this.#db, entry);
    });
  }

  redeemCode(sha256: string, now: number): Promise<SignInCode | null> {
    return this.#writes.add(() => {
      const code = this.#db
        .prepare('DELETE FROM sign_in_codes WHERE sha256 = ? RETURNING sha256, token_sha256, expires_at')
        .get(sha256) as SignInCode | undefined;
      return code && isTime(code.expires_at) && code.expires_at > now ? code : null;
    });
  }

  async noteTokenUse({ token_sha256: hash, used_at: at, address }: TokenUse): Promise<void> {
    await this.#writes.add(() =>
      this.#db
        .prepare('INSERT OR REPLACE INTO token_uses (token_sha256, used_at, address) VALUES (?, ?, ?)')
        .run(hash, at, address),
    );
  }

  async listTokenUses(): Promise<TokenUse[]> {
    const rows = this.#db.prepare('SELECT token_sha256, used_at, address FROM token_uses').all();
    return (rows as unknown as TokenUse[]).filter(({ used_at: at }) => isTime(at));
  }

  async appendAudit(entry: AuditEntry): Promise<void> {
    await this.#writes.add(() => appendAudit(this.#db, entry));
  }

  async listAudit(after: number, limit: number): Promise<AuditRow[]> {
    return this.#db
      .prepare(
        'SELECT seq, ts, type, actor_json, address, body_json, digest FROM audit WHERE seq > ? ORDER BY seq LIMIT ?',
      )
      .all(after, limit) as unknown as AuditRow[];
  }

  async listAuditOfType(type: AuditType, limit: number): Promise<AuditRow[]> {
    return this.#db
      .prepare(`SELECT ${AUDIT} FROM audit WHERE type = ? ORDER BY seq DESC LIMIT ?`)
      .all(type, limit) as unknown as AuditRow[];
  }

  async auditHead(): Promise<AuditHead | null> {
    return readHead(this.#db);
  }

  // Every lookup reads the file, so no notification is needed.
  onChanged(): () => void {
    return () => {};
  }
}

// Within a transaction that holds the write lock, so that two processes never append the same seq.
export function appendAudit(db: Database, entry: AuditEntry): void {
  const { last } = db.prepare('SELECT MAX(seq) AS last FROM audit WHERE seq < ?').get(MOST_ROWS) as {
    last: number | null;
  };
  const rows = nextAuditRows(readHead(db), last ?? 0, entry);
  const insert = db.prepare(`INSERT INTO audit (${AUDIT}) VALUES (?, ?, ?, ?, ?, ?, ?)`);
  const move = db.prepare(`INSERT INTO audit_head (only, seq, digest) VALUES (1, ?, ?)
    ON CONFLICT (only) DO UPDATE SET seq = excluded.seq, digest = excluded.digest`);
  for (const { seq, ts, type, actor_json: actor, address, body_json: body, digest } of rows) {
    insert.run(seq, ts, type, actor, address, body, digest);
    move.run(seq, digest);
  }
}

function readHead(db: Database): AuditHead | null {
  return toAuditHead(db.prepare('SELECT seq, digest FROM audit_head WHERE only = 1').get());
}
