// Who may call what, from where, checked before anything else of a request: the host must be one of ours, a page must
// be ours, and a token or a session must allow the route. Without one only health, the console's empty page and the
// sign-in route are served. Failures are slowed down.
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { RequestError } from '../../run/request-error.js';
import type { AuditTrace } from '../../store/audit.js';
import { clientAddress, type IsTrusted } from './client-address.js';
import type { FailedAttempts } from './failed-attempts.js';
import type { Sessions } from './sessions.js';
import type { Caller, TokenBook } from './token-book.js';
import { ROLES, type Role } from './tokens.js';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
    // The client's network address, as far as it can be known.
    address: string;
    // False once the token was revoked or the session ended: an open stream ends then.
    mayGoOn: () => boolean;
  }
  interface FastifyContextConfig {
    // What the caller must be; anyone: no token is needed.
    role?: Role | 'anyone';
  }
}

export interface AccessRules {
  readonly tokens: TokenBook;
  readonly sessions: Sessions;
  readonly attempts: FailedAttempts;
  // Peers whose X-Forwarded-For header is believed.
  readonly isTrustedProxy: IsTrusted;
  // Names with their ports, as in a Host header.
  readonly hosts: () => ReadonlySet<string>;
  // The cookie's name.
  readonly cookie: string;
  readonly closing: () => boolean;
}

// Responses are for the caller only, are what their type says, and share no window with another page. As a page they
// may do nothing but be shown; the console has a policy of its own.
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
const NO_TOKEN =
  'A token is needed. In a browser: run parley link and open what it prints. ' +
  'In a program: send Authorization: Bearer TOKEN.';
const BAD_TOKEN =
  'This token is unknown, expired or revoked. An operator can make a new one: parley token rotate NAME or parley ' +
  'token add NAME';
const BAD_SESSION = 'This session has ended. Sign in again: run parley link and open what it prints.';

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
    if (bearer === null && secret === null) throw new RequestError('UNAUTHORIZED', NO_TOKEN);
    await tokens.refresh();
    const caller = bearer === null ? await sessions.find(secret ?? '') : await tokens.resolve(bearer);
    if (!caller) return refuseAttempt(rules.attempts, request, reply, bearer === null ? BAD_SESSION : BAD_TOKEN);
    // A browser sends the cookie by itself, also for a page of another site; it says so in Origin.
    if (bearer === null && !SAFE_METHODS.has(request.method) && request.headers.origin === undefined)
      throw new RequestError(
        'ORIGIN_NOT_ALLOWED',
        'A request that changes something needs an Origin header, or a token of its own.',
      );
    if (bearer === null && isOfAnotherPage(request))
      throw new RequestError(
        'ORIGIN_NOT_ALLOWED',
        'A page of another origin may not use this server, whatever it shows or loads.',
      );
    if (ROLES.indexOf(caller.role) < ROLES.indexOf(role))
      throw new RequestError(
        'FORBIDDEN',
        `This needs the role ${role}; the token "${caller.token ?? caller.actor.name}" has the role ${caller.role}.`,
      );
    refuseAtEnd(request);
    request.caller = caller;
    request.mayGoOn = () => sessions.isLive(caller);
    sessions.noteUse(caller, request.address);
  });
  // Checked again when the whole body has arrived, which may have taken a while.
  app.addHook('preHandler', async (request) => refuseAtEnd(request));

  function refuseAtEnd({ method }: FastifyRequest): void {
    if (rules.closing() && !SAFE_METHODS.has(method))
      throw new RequestError('SHUTTING_DOWN', 'the server is being stopped');
  }
}

// Refuses wrong credentials: later and later for one address. Where too many wait already, at once and with the end of
// the connection, so that each further guess needs a new one.
export async function refuseAttempt(
  attempts: FailedAttempts,
  { address }: FastifyRequest,
  reply: FastifyReply,
  message: string,
): Promise<never> {
  const retryAfter = await attempts.fail(address);
  if (retryAfter === null) throw new RequestError('UNAUTHORIZED', message);
  reply.header('retry-after', String(retryAfter)).header('connection', 'close');
  throw new RequestError(
    'TOO_MANY_ATTEMPTS',
    `Too many wrong tokens or codes came from ${address}. Wait ${retryAfter} s and try again with a valid one.`,
  );
}

// Refuses a sign-in that a page of another site makes for the person in front of it.
export function checkOwnPage(request: FastifyRequest): void {
  if (request.headers.origin === undefined)
    throw new RequestError(
      'ORIGIN_NOT_ALLOWED',
      'Signing in is for pages of this server: the request needs their Origin header. ' +
        'A program sends its token with each request instead.',
    );
  if (isOfAnotherPage(request))
    throw new RequestError('ORIGIN_NOT_ALLOWED', 'A page of another origin may not sign a browser in.');
}

function checkHost({ headers: { host, origin } }: FastifyRequest, allowed: ReadonlySet<string>): void {
  if (host === undefined || !allowed.has(host.toLowerCase()))
    throw new RequestError(
      'HOST_NOT_ALLOWED',
      `This server is not reached as ${JSON.stringify(host ?? '')}. ` +
        'Add the name to allowed_hosts in config.json, or set public_url.',
    );
  if (origin !== undefined && !allowed.has(hostOf(origin)))
    throw new RequestError('ORIGIN_NOT_ALLOWED', `A page of ${JSON.stringify(origin)} may not call this server.`);
}

// An image, a script or the like of another page: it has no Origin, and from another port of this host it brings the
// cookie. A person who follows a link comes as a page of their own.
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

// Named after what its server serves: several on one machine must not take each other's. The name tells nothing of it.
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

export function signOutCookie(name: string, secure: boolean): string {
  return signInCookie(name, '', { maxAgeSec: 0, secure });
}

// The caller, where the route needs one.
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new RequestError('UNAUTHORIZED', NO_TOKEN);
  return request.caller;
}

// Who does something now, for the administrative journal.
export function traceOf(request: FastifyRequest, at: number): AuditTrace {
  return { at, actor: callerOf(request).actor, address: request.address };
}
