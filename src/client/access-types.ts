// What the calls about access return.
import type { JsonObject } from '../kernel/json.js';

export interface SignedIn {
  /** The person. */
  readonly name: string;
  readonly role: 'viewer' | 'replier' | 'operator';
  /** When the session ends at the latest. */
  readonly expires_at: string;
}

export interface SignInLink {
  /** Open it in a browser. The code is in the fragment, which browsers do not send. */
  readonly url: string;
  /** The code by itself. */
  readonly code: string;
  readonly expires_at: string;
  /** The person that it signs in as. */
  readonly name: string;
  readonly role: 'viewer' | 'replier' | 'operator';
}

export interface BrowserSession {
  readonly session_id: string;
  readonly person: string;
  /** The name of the token that signed in; null for the operator token. */
  readonly token: string | null;
  readonly created_at: string;
  /** Stored at most once a minute. */
  readonly last_used_at: string;
  readonly expires_at: string;
  /** When it ends if it is not used again. */
  readonly ends_at: string;
  readonly address: string | null;
  readonly user_agent: string | null;
  /** Whether the request came with it. */
  readonly current: boolean;
}

export interface SessionPage {
  readonly sessions: readonly BrowserSession[];
  /** Pass it as `cursor` for the next page; null at the end. */
  readonly next_cursor: string | null;
}

export interface AuditPage {
  readonly entries: readonly AuditEntry[];
  /** Pass it as `after` for the next page; null at the end. */
  readonly next_after: number | null;
  /** The last row and its digest. */
  readonly head: { readonly seq: number; readonly digest: string };
}

export interface AuditEntry {
  readonly seq: number;
  readonly ts: string;
  readonly type: string;
  readonly actor: { readonly kind: string; readonly name: string; readonly token?: string } | null;
  /** Null: a command on the machine of the data directory, or Parley itself. */
  readonly address: string | null;
  readonly body: JsonObject;
  /** SHA-256 over the digest before it and this row. */
  readonly digest: string;
}
