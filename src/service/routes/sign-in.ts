// Signing browsers in and out, their sessions, and the codes that sign one browser in.
import type { FastifyRequest } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import * as z from 'zod';
import { toTimestamp } from '../../kernel/clock.js';
import { refusal } from '../../run/request-error.js';
import type { SessionRecord } from '../../store/access-store.js';
import { callerOf, checkOwnPage, refuseAttempt, signInCookie, signOutCookie, traceOf } from '../access/access.js';
import {
  codeBody,
  codeView,
  sessionId,
  sessionList,
  sessionQuery,
  signedIn,
  signInBody,
  type sessionView,
} from '../access/access-schemas.js';
import { RateLimit } from '../access/caller-limits.js';
import { REFUSALS } from '../requests.js';
import type { RouteContext } from '../service.js';
import { CODE_MS } from '../access/sessions.js';

// Each sign-in adds a row to the administrative journal, which is never shortened. Codes are created by operators and
// work once, so they are not limited.
const TOKEN_SIGN_INS = { limit: 30, periodMs: 60_000 };
const params = z.strictObject({ id: sessionId });

export async function signInRoutes({
  app: bare,
  tokens,
  sessions,
  attempts,
  clock,
  cookie,
  baseUrl,
}: RouteContext): Promise<void> {
  const app = bare.withTypeProvider<ZodTypeProvider>();
  const tokenSignIns = new RateLimit(clock, TOKEN_SIGN_INS);
  const isSecure = (): boolean => baseUrl().startsWith('https://');

  app.post(
    '/v1/sign-in',
    {
      schema: {
        operationId: 'signIn',
        summary: 'Sign this browser in, with a code or a token',
        tags: ['access'],
        security: [],
        body: signInBody,
        response: { 200: signedIn, ...REFUSALS },
      },
      config: { role: 'anyone' },
      onRequest: async (request) => checkOwnPage(request),
    },
    async (request, reply) => {
      const { code, token } = request.body;
      if ((code === undefined) === (token === undefined)) throw refusal('INVALID_ARGUMENT.code_or_token');
      await tokens.refresh();
      const caller = code === undefined ? await tokens.resolve(token ?? '') : await sessions.redeem(code);
      if (!caller || caller.isHost)
        return refuseAttempt(attempts, reply, code === undefined ? 'bad_token' : 'bad_code');
      const retryAfter = code === undefined ? tokenSignIns.count(caller) : null;
      if (retryAfter !== null) {
        reply.header('retry-after', String(retryAfter));
        throw refusal('TOO_MANY_REQUESTS.sign_ins', { limit: TOKEN_SIGN_INS.limit, seconds: retryAfter });
      }
      const { secret, session } = await sessions.signIn(caller, {
        by: code === undefined ? 'token' : 'code',
        address: request.address,
        userAgent: request.headers['user-agent'] ?? null,
      });
      reply.header(
        'set-cookie',
        signInCookie(cookie, secret, {
          maxAgeSec: Math.max(1, Math.floor((session.expires_at - session.created_at) / 1000)),
          secure: isSecure(),
        }),
      );
      return { name: caller.actor.name, role: caller.role, expires_at: toTimestamp(session.expires_at) };
    },
  );

  app.post(
    '/v1/sign-out',
    {
      schema: {
        operationId: 'signOut',
        summary: "End this browser's session",
        tags: ['access'],
        response: { 204: z.null(), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { session } = callerOf(request);
      if (session) await sessions.end(session.session_id, traceOf(request, clock.now()), 'sign_out');
      return reply
        .header('set-cookie', signOutCookie(cookie, { secure: isSecure() }))
        .code(204)
        .send(null);
    },
  );

  app.get(
    '/v1/sessions',
    {
      schema: {
        operationId: 'listSessions',
        summary: 'Browsers that are signed in: your own, or all for operators',
        tags: ['access'],
        querystring: sessionQuery,
        response: { 200: sessionList, ...REFUSALS },
      },
    },
    async (request) => {
      const { cursor: after, limit } = request.query;
      const { role, actor } = callerOf(request);
      const { sessions: listed, next } = await sessions.list({
        person: role === 'operator' ? undefined : actor.name,
        after,
        limit,
      });
      return { sessions: listed.map((session) => toView(session, request)), next_cursor: next };
    },
  );

  app.delete(
    '/v1/sessions/:id',
    {
      schema: {
        operationId: 'endSession',
        summary: 'End a session: your own, or any for operators',
        tags: ['access'],
        params,
        response: { 204: z.null(), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      const { role, actor } = callerOf(request);
      const session = await sessions.findById(id);
      const isAllowed = session !== null && (role === 'operator' || session.person === actor.name);
      if (!isAllowed || !(await sessions.end(id, traceOf(request, clock.now()), 'session.ended')))
        throw refusal('NOT_FOUND.session', { session: id });
      return reply.code(204).send(null);
    },
  );

  app.post(
    '/v1/sign-in-codes',
    {
      schema: {
        operationId: 'createSignInCode',
        summary: 'Make a link that signs one browser in',
        tags: ['access'],
        body: codeBody,
        response: { 201: codeView, ...REFUSALS },
      },
      config: { role: 'operator' },
    },
    async (request, reply) => {
      const { as, expires_in_sec: lifeSec } = request.body ?? {};
      const caller = callerOf(request);
      // Without a name the code is for the operator: the caller itself, or the server's own token if the caller has a
      // named one.
      const target = as === undefined && caller.token === null ? caller : tokens.findByName(as ?? null);
      if (!target) throw refusal('INVALID_ARGUMENT.token_invalid', { name: as ?? '' });
      const { code, expiresAt } = await sessions.createCode(
        target,
        lifeSec === undefined ? CODE_MS : lifeSec * 1000,
        traceOf(request, clock.now()),
      );
      return reply.code(201).send({
        url: linkOf(baseUrl(), code),
        code,
        expires_at: toTimestamp(expiresAt),
        name: target.actor.name,
        role: target.role,
      });
    },
  );
}

// Browsers do not send the fragment, so the code reaches neither proxies nor logs.
export function linkOf(base: string, code: string): string {
  return `${base.replace(/\/+$/, '')}/#code=${code}`;
}

function toView(session: SessionRecord, { caller }: FastifyRequest): z.input<typeof sessionView> {
  const {
    session_id: id,
    person,
    token,
    created_at: made,
    last_used_at: used,
    expires_at: expires,
    ends_at: ends,
    address,
    user_agent: agent,
  } = session;
  return {
    session_id: id,
    person,
    token,
    created_at: toTimestamp(made),
    last_used_at: toTimestamp(used),
    expires_at: toTimestamp(expires),
    ends_at: toTimestamp(ends),
    address,
    user_agent: agent,
    current: caller?.session?.session_id === id,
  };
}
