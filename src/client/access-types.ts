// The results of the calls about access.
import type { JsonObject } from '../kernel/json.js';

/** A browser session that was just created. */
export interface SignedIn {
  /** The person. */
  readonly name: string;
  /** What the session or token allows. */
  readonly role: 'viewer' | 'replier' | 'operator';
  /** When the session ends at the latest. */
  readonly expires_at: string;
}

/** A link that signs one browser in, once. */
export interface SignInLink {
  /** Open it in a browser. The code is in the fragment, which browsers do not send. */
  readonly url: string;
  /** The code by itself. */
  readonly code: string;
  /** When it expires (ISO 8601). */
  readonly expires_at: string;
  /** The person that it signs in as. */
  readonly name: string;
  /** What the session or token allows. */
  readonly role: 'viewer' | 'replier' | 'operator';
}

/** A browser that is signed in. */
export interface BrowserSession {
  /** The id of the session. */
  readonly session_id: string;
  /** The person who signed in. */
  readonly person: string;
  /** The name of the token that signed in; null for the operator token. */
  readonly token: string | null;
  /** When it was created (ISO 8601). */
  readonly created_at: string;
  /** Stored at most once a minute. */
  readonly last_used_at: string;
  /** When the session ends at the latest. */
  readonly expires_at: string;
  /** When it ends if it is not used again. */
  readonly ends_at: string;
  /** The address of the client, if known. */
  readonly address: string | null;
  /** The User-Agent header of the browser. */
  readonly user_agent: string | null;
  /** Whether the request came with it. */
  readonly current: boolean;
}

/** A page of browser sessions. */
export interface SessionPage {
  /** The sessions. */
  readonly sessions: readonly BrowserSession[];
  /** Pass it as `cursor` for the next page; null at the end. */
  readonly next_cursor: string | null;
}

/** A page of the administrative journal. */
export interface AuditPage {
  /** The rows, by seq. */
  readonly entries: readonly AuditEntry[];
  /** Pass it as `after` for the next page; null at the end. */
  readonly next_after: number | null;
  /** The last row and its digest. */
  readonly head: { readonly seq: number; readonly digest: string };
}

/** A row of the administrative journal. */
export interface AuditEntry {
  /** The number of the row, from 1, without gaps. */
  readonly seq: number;
  /** When it happened (ISO 8601). */
  readonly ts: string;
  /** What happened, for instance `token.added`. */
  readonly type: string;
  /** Who did it; null: Parley itself. */
  readonly actor: { readonly kind: string; readonly name: string; readonly token?: string } | null;
  /** Null: a command on the machine of the data directory, or Parley itself. */
  readonly address: string | null;
  /** Further facts, depending on the type. */
  readonly body: JsonObject;
  /** SHA-256 over the digest before it and this row. */
  readonly digest: string;
}
