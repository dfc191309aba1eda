// One form for everything that is refused: {"error":{"code","message","details"}}. What is not ours to explain to a
// stranger is logged under an id, and the id is what the stranger gets.
import { randomUUID } from 'node:crypto';
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { HTTP_STATUS, type RequestErrorCode } from '../../contract/error-codes.js';
import type { JsonObject } from '../../kernel/json.js';
import { damageIn } from '../../kernel/stored-json.js';
import { RequestError } from '../../run/request-error.js';
import { explainZodIssues } from './explain-zod-issues.js';
import { KnownAddresses } from '../access/known-addresses.js';

type Code = keyof typeof HTTP_STATUS;

interface Refusal {
  readonly code: Code;
  readonly message: string;
  readonly details?: JsonObject;
}

// What Fastify refuses by itself.
const FRAMEWORK: Readonly<Record<string, readonly [RequestErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'the body is larger than this server takes'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'the body has another type than application/json, the only one that is read',
  ],
  FST_ERR_CTP_INVALID_JSON_BODY: ['INVALID_ARGUMENT', 'the body is not JSON'],
  FST_ERR_CTP_EMPTY_JSON_BODY: ['INVALID_ARGUMENT', 'the body is empty; send JSON'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['INVALID_ARGUMENT', 'the body is not as long as it was said to be'],
  ECONNRESET: ['INVALID_ARGUMENT', 'the request broke off'],
  FST_ERR_BAD_URL: ['INVALID_ARGUMENT', 'the address cannot be read'],
  FST_ERR_MAX_PARAM_LENGTH: ['INVALID_ARGUMENT', 'a part of the address is too long'],
};
// The store says no: the disk is full, broken or read-only.
const STORE_CODES = new Set(['ERR_SQLITE_ERROR', 'ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE']);

// When a refusal that passes is worth another try, by its status.
const RETRY_AFTER_SEC: Readonly<Record<number, number>> = { 429: 1, 503: 5 };

// For a person who opens an address in a browser.
export const HTML = 'text/html; charset=utf-8';
const STRANGER = pageOf(
  '<p>This browser is not signed in. Run <code>parley link</code> where the server runs and open the link that ' +
    'it prints, ' +
    'or <a href="/">sign in with a token</a>.</p>',
);
export const NOTHING = pageOf('<p>There is nothing at this address. <a href="/">To the inbox</a></p>');

export function isPerson({ headers, method }: FastifyRequest): boolean {
  return (method === 'GET' || method === 'HEAD') && (headers.accept?.includes('text/html') ?? false);
}

function pageOf(text: string): string {
  return (
    '<!doctype html><html lang="en" style="color-scheme:light dark"><meta charset="utf-8"><meta ' +
    'name="viewport" content="width=device-width"><title>Parley</title><body style="font:16px/1.5 ' +
    `system-ui;max-width:34rem;margin:4rem auto;padding:0 1rem"><h1>Parley</h1>${text}`
  );
}

export function refuseInOneForm(app: FastifyInstance): void {
  const addresses = new KnownAddresses(app);
  app.setNotFoundHandler(async (request, reply) => {
    const path = request.url.split('?')[0] ?? '';
    const methods = addresses.methodsOf(path);
    if (methods.length === 0) throw new RequestError('NOT_FOUND', `there is nothing at ${request.method} ${path}`);
    reply.header('allow', methods.join(', '));
    throw new RequestError('METHOD_NOT_ALLOWED', `${path} takes ${methods.join(', ')}, not ${request.method}.`);
  });
  app.setErrorHandler<FastifyError>(async (error, request, reply) => {
    const refusal = explain(error, request);
    if (refusal.code === 'INTERNAL' || refusal.code === 'STORE_UNAVAILABLE' || refusal.code === 'DATA_DIR_UNUSABLE')
      request.log.error({ err: error, error_id: refusal.details?.['error_id'] }, refusal.code);
    if (refusal.code === 'UNAUTHORIZED') {
      reply.header('www-authenticate', 'Bearer');
      if (isPerson(request)) return reply.code(401).type(HTML).send(STRANGER);
    }
    if (refusal.code === 'NOT_FOUND' && isPerson(request)) return reply.code(404).type(HTML).send(NOTHING);
    const retryAfter = RETRY_AFTER_SEC[HTTP_STATUS[refusal.code]];
    if (retryAfter !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', retryAfter);
    // Closed at once, the rest of the body would come back as a reset, and the client would never read why.
    if (refusal.code === 'BODY_TOO_LARGE') reply.removeHeader('connection');
    return reply.code(HTTP_STATUS[refusal.code]).type('application/json').send(envelope(refusal));
  });
}

// The parts of a request as their sender calls them.
const PARTS = {
  body: ['body', 'body'],
  querystring: ['query', 'query'],
  params: ['path', 'params'],
  headers: ['headers', 'headers'],
} as const;

export function explain(error: unknown, request?: FastifyRequest): Refusal {
  if (error instanceof RequestError) return { code: error.code, message: error.message };
  if (hasZodFastifySchemaValidationErrors(error)) {
    const context = (error.validationContext ?? 'body') as keyof typeof PARTS;
    const [name, member] = PARTS[context];
    const schema = (request?.routeOptions.schema as Record<string, unknown> | undefined)?.[context];
    const problems = explainZodIssues(error.validation, { name, value: request?.[member], schema });
    const message = problems.map((problem) => problem.message).join(' ');
    const details = { where: name, problems: problems.map(({ path, message: text }) => ({ path, message: text })) };
    return { code: 'INVALID_ARGUMENT', message, details };
  }
  const code = codeOf(error);
  const [known, message = ''] = FRAMEWORK[code] ?? [];
  if (known) return { code: known, message };
  if (error instanceof SyntaxError && 'statusCode' in error)
    return { code: 'INVALID_ARGUMENT', message: `the body is not JSON: ${error.message}` };
  const damage = damageIn(error);
  if (damage) return { code: 'DATA_DIR_UNUSABLE', message: `what is stored is damaged: ${damage.message}` };
  const id = randomUUID();
  // What the store refuses by its own rules is a defect of ours.
  if (STORE_CODES.has(code) && !/constraint/i.test((error as Error).message))
    return {
      code: 'STORE_UNAVAILABLE',
      message: `nothing was changed: ${(error as Error).message}`,
      details: { error_id: id },
    };
  return { code: 'INTERNAL', message: `a defect of Parley, logged under ${id}`, details: { error_id: id } };
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

export function envelope({ code, message, details }: Refusal): { readonly error: Refusal } {
  return { error: { code, message, ...(details ? { details } : {}) } };
}
