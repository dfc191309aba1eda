// Checks each request before any other code handles it: the Host header must name this server, a page must be from this
// server, and a token or a session must allow the route. Without a token or session, only health, the console's empty
// page and the sign-in route are served. Repeated failures are slowed down.
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refusal } from '../../run/request-error.js';
import type { AuditTrace } from '../../store/audit.js';
import { clientAddress, type IsTrusted } from './client-address.js';
import type { FailedAttempts } from './failed-attempts.js';
import type { Sessions } from './sessions.js';
import type { Caller, TokenBook } from './token-book.js';
import { ROLES, type Role } from './tokens.js';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
    // The client's network address, as far as it is known.
    address: string;
    // False once the token was revoked or the session ended: an open stream ends then.
    mayGoOn: () => boolean;
  }
  interface FastifyContextConfig {
    // The required role; anyone: no token is needed.
    role?: Role | 'anyone';
  }
}

export interface AccessRules {
  readonly tokens: TokenBook;
  readonly sessions: Sessions;
  readonly attempts: FailedAttempts;
  // Proxies whose X-Forwarded-For header is trusted.
  readonly isTrustedProxy: IsTrusted;
  // Names with their ports, as in a Host header.
  readonly hosts: () => ReadonlySet<string>;
  // The cookie's name.
  readonly cookie: string;
  readonly closing: () => boolean;
}

// Responses are for the caller only, have the type that they declare, and share no window with another page. Opened as
// a page they may load and run nothing; the console has its own policy.
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
} as const;
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

export function guardAccess(app: FastifyInstance, rules: AccessRules): void {
  const { tokens, sessions } = rules;
  app.decorateRequest('caller', null);
  app.decorateRequest('address', '');
  app.decorateRequest('mayGoOn', () => true);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    const forwarded = request.headers['x-forwarded-for'];
    request.address = clientAddress(
      request.raw.socket.remoteAddress,
      Array.isArray(forwarded) ? forwarded.join(',') : forwarded,
      rules.isTrustedProxy,
    );
    const { role = 'viewer' } = request.routeOptions.config;
    checkHost(request, rules.hosts());
    if (role === 'anyone') return;
    const bearer = bearerOf(request);
    const secret = bearer === null ? cookieOf(request, rules.cookie) : null;
    if (bearer === null && secret === null) throw refusal('UNAUTHORIZED.no_token');
    await tokens.refresh();
    const caller = bearer === null ? await sessions.find(secret ?? '') : await tokens.resolve(bearer);
    if (!caller) return refuseAttempt(rules.attempts, reply, bearer === null ? 'bad_session' : 'bad_token');
    // A browser sends the cookie automatically, also for a page of another site; Origin names that site.
    if (bearer === null && !SAFE_METHODS.has(request.method) && request.headers.origin === undefined)
      throw refusal('ORIGIN_NOT_ALLOWED.missing');
    if (bearer === null && isOfAnotherPage(request)) throw refusal('ORIGIN_NOT_ALLOWED.other');
    if (ROLES.indexOf(caller.role) < ROLES.indexOf(role))
      throw refusal('FORBIDDEN', { needed: role, token: caller.token ?? caller.actor.name, role: caller.role });
    refuseAtEnd(request);
    request.caller = caller;
    request.mayGoOn = () => sessions.isLive(caller);
    sessions.noteUse(caller, request.address);
  });
  // Checked again when the complete body has arrived, which may take a while.
  app.addHook('preHandler', async (request) => refuseAtEnd(request));

  function refuseAtEnd({ method }: FastifyRequest): void {
    if (rules.closing() && !SAFE_METHODS.has(method)) throw refusal('SHUTTING_DOWN.change');
  }
}

// Refuses wrong credentials after a delay that grows with the failures of the address. If too many requests are waiting
// already, refuses at once and closes the connection, so that each further guess needs a new connection.
export async function refuseAttempt(
  attempts: FailedAttempts,
  reply: FastifyReply,
  reason: 'bad_token' | 'bad_session' | 'bad_code',
): Promise<never> {
  const { address } = reply.request;
  const retryAfter = await attempts.fail(address);
  if (retryAfter === null) throw refusal(`UNAUTHORIZED.${reason}`);
  reply.header('retry-after', String(retryAfter)).header('connection', 'close');
  throw refusal('TOO_MANY_ATTEMPTS', { address, seconds: retryAfter });
}

// Refuses a sign-in that a page of another site makes for the person in front of it.
export function checkOwnPage(request: FastifyRequest): void {
  if (request.headers.origin === undefined) throw refusal('ORIGIN_NOT_ALLOWED.sign_in_missing');
  if (isOfAnotherPage(request)) throw refusal('ORIGIN_NOT_ALLOWED.sign_in_other');
}

function checkHost({ headers: { host, origin } }: FastifyRequest, allowed: ReadonlySet<string>): void {
  if (host === undefined || !allowed.has(host.toLowerCase()))
    throw refusal('HOST_NOT_ALLOWED', { host: JSON.stringify(host ?? '') });
  if (origin !== undefined && !allowed.has(hostOf(origin)))
    throw refusal('ORIGIN_NOT_ALLOWED.page', { origin: JSON.stringify(origin) });
}

// An image, a script or another part of a foreign page: such a request has no Origin, and from another port of this
// host it carries the cookie. A person who follows a link loads a page of their own.
function isOfAnotherPage({
  headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest },
}: FastifyRequest): boolean {
  return (site === 'same-site' || site === 'cross-site') && !(mode === 'navigate' && dest === 'document');
}

function hostOf(origin: string): string {
  return URL.canParse(origin) ? new URL(origin).host : '';
}

function bearerOf({ headers: { authorization } }: FastifyRequest): string | null {
  return /^Bearer +(\S+) *$/i.exec(authorization ?? '')?.[1] ?? null;
}

function cookieOf({ headers: { cookie } }: FastifyRequest, name: string): string | null {
  for (const pair of cookie?.split(';') ?? []) {
    const at = pair.indexOf('=');
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || null;
  }
  return null;
}

// The name depends on the data that the server serves, so several servers on one machine do not overwrite each other's
// cookies. It is a hash and reveals nothing.
export function cookieName(served: string): string {
  return `parley_${createHash('sha256').update(served).digest('hex').slice(0, 12)}`;
}

// The session's secret. No script can read it, and other sites' requests do not carry it. Browsers send a host's
// cookies to all its ports.
export function signInCookie(
  name: string,
  secret: string,
  { maxAgeSec, secure }: { readonly maxAgeSec: number; readonly secure: boolean },
): string {
  return `${name}=${secret}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAgeSec}${secure ? '; Secure' : ''}`;
}

export function signOutCookie(name: string, { secure }: { readonly secure: boolean }): string {
  return signInCookie(name, '', { maxAgeSec: 0, secure });
}

// Returns the caller of a route that requires one.
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw refusal('UNAUTHORIZED.no_token');
  return request.caller;
}

// The caller and the time, for the administrative journal.
export function traceOf(request: FastifyRequest, at: number): AuditTrace {
  return { at, actor: callerOf(request).actor, address: request.address };
}
