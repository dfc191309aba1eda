// Who may ask what, from where: looked at before anything else of a request. The host must be ours, a page must be of ours, and a
// token must allow the route; without one nothing but health and the way to sign in answers.
import { createHash } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { RequestError } from '../run/request-error.js';
import { ROLES, sessionFor, type Caller, type Role, type TokenBook } from './tokens.js';

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null;
    // False once the token was taken away: a stream ends then.
    mayGoOn: () => boolean;
  }
  interface FastifyContextConfig {
    // What the caller must be; anyone: no token is needed.
    role?: Role | 'anyone';
  }
}

export interface AccessRules {
  readonly tokens: TokenBook;
  // Names with their ports, as they stand in a Host header.
  readonly hosts: () => ReadonlySet<string>;
  // The name of it.
  readonly cookie: string;
  readonly closing: () => boolean;
}

// What is answered is for the one who asked, and is what it says it is; as a page it may do nothing but look like one. The console has a
// policy of its own.
const HEADERS = {
  'cache-control': 'no-store',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'x-frame-options': 'DENY',
  'cross-origin-resource-policy': 'same-origin',
  'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
} as const;
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

export function guardAccess(app: FastifyInstance, rules: AccessRules): void {
  app.decorateRequest('caller', null);
  app.decorateRequest('mayGoOn', () => true);
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS);
    const { role = 'viewer' } = request.routeOptions.config;
    checkHost(request, rules.hosts());
    if (role === 'anyone') return;
    const bearer = bearerOf(request);
    const session = bearer === null ? cookieOf(request, rules.cookie) : null;
    const caller = bearer !== null ? rules.tokens.find(bearer) : session === null ? null : rules.tokens.findSignedIn(session);
    if (!caller) throw new RequestError('UNAUTHORIZED', bearer === null && session === null ? 'a token is needed: open the link that parley serve has printed, or send Authorization: Bearer …' : 'this token is not known: parley token ls lists those that are, and parley serve prints a link with one of its own');
    // A browser sends the cookie by itself, also for a page of somebody else; it says so in Origin.
    if (bearer === null && !SAFE_METHODS.has(request.method) && request.headers.origin === undefined) throw new RequestError('ORIGIN_NOT_ALLOWED', 'a request that changes something needs an Origin, or a token of its own');
    if (bearer === null && isOfAnotherPage(request)) throw new RequestError('ORIGIN_NOT_ALLOWED', 'a page of another origin may not use this server, whatever it shows or loads');
    if (ROLES.indexOf(caller.role) < ROLES.indexOf(role)) throw new RequestError('FORBIDDEN', `this needs the role ${role}; the token "${caller.actor.name}" has the role ${caller.role}`);
    refuseAtEnd(request);
    request.caller = caller;
    request.mayGoOn = () => rules.tokens.knows(caller);
  });
  // Once more when all of it has arrived, which may have taken its time.
  app.addHook('preHandler', async (request) => refuseAtEnd(request));

  function refuseAtEnd({ method }: FastifyRequest): void {
    if (rules.closing() && !SAFE_METHODS.has(method)) throw new RequestError('SHUTTING_DOWN', 'the server is being stopped');
  }
}

function checkHost({ headers: { host, origin } }: FastifyRequest, allowed: ReadonlySet<string>): void {
  if (host === undefined || !allowed.has(host.toLowerCase())) throw new RequestError('HOST_NOT_ALLOWED', `this server does not answer for the host ${JSON.stringify(host ?? '')}; allowed_hosts in config.json names more`);
  if (origin !== undefined && !allowed.has(hostOf(origin))) throw new RequestError('ORIGIN_NOT_ALLOWED', `a page of ${JSON.stringify(origin)} may not call this server`);
}

// An image, a script or the like of another page: it has no Origin, and from another port of this host it brings the cookie. A person who
// follows a link comes as a page of their own.
function isOfAnotherPage({ headers: { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest } }: FastifyRequest): boolean {
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

const COOKIE_DAYS = 90;

// What signs a browser in. It is not the token; no script can read it, and no request of another site carries it. Browsers give
// the cookies of a host to all its ports.
export function signInCookie(name: string, token: string): string {
  return `${name}=${sessionFor(token)}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${COOKIE_DAYS * 24 * 3600}`;
}

export function signOutCookie(name: string): string {
  return `${name}=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0`;
}

// The one who asks, where the route needs one.
export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new RequestError('UNAUTHORIZED', 'a token is needed');
  return request.caller;
}
