// The schemas of the access routes: signing in and out, sessions, sign-in codes and the administrative journal.
import * as z from 'zod';
import { SESSION_ID } from './sessions.js';
import { pageSize, seq, timestamp } from '../schemas.js';
import { ROLES } from './tokens.js';

const role = z.enum(ROLES);
const secret = z.string().min(1).max(500);

export const signInBody = z.strictObject({
  code: secret.optional().meta({ description: 'The code of parley link, which works once.' }),
  token: secret.optional().meta({ description: 'In place of a code: a token.' }),
});
export const signedIn = z.strictObject({ name: z.string(), role, expires_at: timestamp });

export const sessionId = z.string().regex(SESSION_ID).meta({ description: 'The id of a session.' });
export const sessionView = z
  .strictObject({
    session_id: sessionId,
    person: z.string(),
    token: z
      .string()
      .nullable()
      .meta({ description: 'The name of the token that signed in; null for the operator token.' }),
    created_at: timestamp,
    last_used_at: timestamp.meta({ description: 'Stored at most once a minute.' }),
    expires_at: timestamp,
    ends_at: timestamp.meta({ description: 'When it ends if it is not used again.' }),
    address: z.string().nullable(),
    user_agent: z.string().nullable(),
    current: z.boolean().meta({ description: 'Whether this request came with it.' }),
  })
  .meta({ id: 'Session', description: 'A browser that is signed in.' });
export const sessionQuery = z.strictObject({ cursor: sessionId.optional(), limit: pageSize.default(50) });
export const sessionList = z.strictObject({ sessions: z.array(sessionView), next_cursor: z.string().nullable() });

export const codeBody = z
  .strictObject({
    as: z
      .string()
      .min(1)
      .max(100)
      .optional()
      .meta({ description: 'The name of the token to sign in with; the operator token without it.' }),
    expires_in_sec: z
      .int()
      .min(10)
      .max(86_400)
      .optional()
      .meta({ description: 'How long the code may be used; ten minutes without it.' }),
  })
  .nullish();
export const codeView = z.strictObject({
  url: z
    .string()
    .meta({ description: 'Open it in a browser. The code is in the fragment, which browsers do not send.' }),
  code: z.string(),
  expires_at: timestamp,
  name: z.string(),
  role,
});

export const auditEntry = z
  .strictObject({
    seq: z.int().min(1),
    ts: timestamp,
    type: z.string(),
    actor: z.looseObject({ kind: z.string(), name: z.string() }).nullable(),
    address: z
      .string()
      .nullable()
      .meta({ description: 'Null: a command on the machine of the data directory, or Parley itself.' }),
    body: z.record(z.string(), z.unknown()),
    digest: z.string().meta({ description: 'SHA-256 over the digest before it and this row.' }),
  })
  .meta({ id: 'AuditEntry', description: 'A row of the administrative journal.' });
export const auditQuery = z.strictObject({
  after: seq.default(0).meta({ description: 'The seq of the last row that is known.' }),
  limit: pageSize.default(50),
});
export const auditPage = z.strictObject({
  entries: z.array(auditEntry),
  next_after: z.int().nullable(),
  head: z.strictObject({ seq: z.int(), digest: z.string() }),
});
