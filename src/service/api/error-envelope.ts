// Every refused request gets the same form of response: {"error":{"code","message","hint","values","details"}}. The
// message of an internal error is only logged, under an id that the response names.
import { randomUUID } from 'node:crypto';
import type { FastifyError, FastifyInstance, FastifyRequest } from 'fastify';
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod';
import { HTTP_STATUS } from '../../contract/error-codes.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Values } from '../../kernel/fill-template.js';
import { damageIn } from '../../kernel/stored-json.js';
import { RequestError, refusal } from '../../run/request-error.js';
import { runError } from '../../run/run-error.js';
import { explainZodIssues } from '../../messages/explain-zod-issues.js';
import { phrase, sentencesOf } from '../../messages/phrase.js';
import { KnownAddresses } from '../access/known-addresses.js';

type Code = keyof typeof HTTP_STATUS;

export interface Refusal {
  readonly code: Code;
  readonly message: string;
  readonly hint?: string | undefined;
  // The values in the message, by name.
  readonly values?: Values;
  readonly details?: JsonObject;
}

// Requests that Fastify itself refuses.
const FRAMEWORK = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'BODY_TOO_LARGE',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'UNSUPPORTED_MEDIA_TYPE.type',
  FST_ERR_CTP_INVALID_JSON_BODY: 'INVALID_ARGUMENT.body_not_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'INVALID_ARGUMENT.body_empty',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'INVALID_ARGUMENT.body_length',
  ECONNRESET: 'INVALID_ARGUMENT.cut_off',
  FST_ERR_BAD_URL: 'INVALID_ARGUMENT.url',
  FST_ERR_MAX_PARAM_LENGTH: 'INVALID_ARGUMENT.url_part',
} as const;
// Errors of the store: the disk is full, broken or read-only.
const STORE_CODES = new Set(['ERR_SQLITE_ERROR', 'ENOSPC', 'EDQUOT', 'EIO', 'EROFS', 'EMFILE', 'ENFILE']);

// After how many seconds a temporary refusal is worth a retry, by its status.
const RETRY_AFTER_SEC: Readonly<Record<number, number>> = { 429: 1, 503: 5 };

// Pages for people who open an address in a browser.
export const HTML = 'text/html; charset=utf-8';
const UNAUTHENTICATED = pageOf(
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
    if (methods.length === 0) throw refusal('NOT_FOUND.endpoint', { method: request.method, path });
    reply.header('allow', methods.join(', '));
    throw refusal('METHOD_NOT_ALLOWED', { path, methods: methods.join(', '), method: request.method });
  });
  app.setErrorHandler<FastifyError>(async (error, request, reply) => {
    const refused = explain(error, request);
    logFailure(request, refused, error);
    if (refused.code === 'UNAUTHORIZED') {
      reply.header('www-authenticate', 'Bearer');
      if (isPerson(request)) return reply.code(401).type(HTML).send(UNAUTHENTICATED);
    }
    if (refused.code === 'NOT_FOUND' && isPerson(request)) return reply.code(404).type(HTML).send(NOTHING);
    const retryAfter = RETRY_AFTER_SEC[HTTP_STATUS[refused.code]];
    if (retryAfter !== undefined && !reply.hasHeader('retry-after')) reply.header('retry-after', retryAfter);
    // If the connection were closed at once, the client would get a reset instead of the response.
    if (refused.code === 'BODY_TOO_LARGE') reply.removeHeader('connection');
    return reply.code(HTTP_STATUS[refused.code]).type('application/json').send(envelope(refused));
  });
}

// Logs an error whose reason the response does not contain.
export function logFailure({ log }: FastifyRequest, { code, details }: Refusal, error: unknown): void {
  if (code === 'INTERNAL' || code === 'STORE_UNAVAILABLE' || code === 'DATA_DIR_UNUSABLE')
    log.error({ err: error, error_id: details?.['error_id'] }, code);
}

// The parts of a request by the names that callers use.
const PARTS = {
  body: ['body', 'body'],
  querystring: ['query', 'query'],
  params: ['path', 'params'],
  headers: ['headers', 'headers'],
} as const;

export function explain(error: unknown, request?: FastifyRequest): Refusal {
  if (error instanceof RequestError) return error;
  if (hasZodFastifySchemaValidationErrors(error)) {
    const context = (error.validationContext ?? 'body') as keyof typeof PARTS;
    const [name, member] = PARTS[context];
    const schema = (request?.routeOptions.schema as Record<string, unknown> | undefined)?.[context];
    const problems = explainZodIssues(error.validation, { name: phrase(name), value: request?.[member], schema });
    const { code, message, values } = refusal('INVALID_ARGUMENT.request', {
      problem: problems.flatMap(({ sentences }) => sentences),
    });
    const listed = problems.map(({ path, sentences }) => ({ path, message: sentencesOf(sentences) }));
    return { code, message, values, details: { where: name, problems: listed } };
  }
  const code = codeOf(error);
  if (isFrameworkCode(code)) return refusal(FRAMEWORK[code]);
  if (error instanceof SyntaxError && 'statusCode' in error)
    return refusal('INVALID_ARGUMENT.body_not_json_reason', { reason: error.message });
  const damage = damageIn(error);
  if (damage) return refusal('DATA_DIR_UNUSABLE.damaged_data', { reason: damage.message });
  const id = randomUUID();
  // A violated constraint of the store is a defect of Parley.
  if (STORE_CODES.has(code) && !/constraint/i.test((error as Error).message))
    return withId(refusal('STORE_UNAVAILABLE.unchanged', { reason: (error as Error).message }), id);
  const { message, values } = runError('INTERNAL.request', { error_id: id });
  return withId({ code: 'INTERNAL', message, ...(values ? { values } : {}) }, id);
}

function withId({ code, message, hint, values }: Refusal, id: string): Refusal {
  return { code, message, hint, ...(values ? { values } : {}), details: { error_id: id } };
}

function isFrameworkCode(code: string): code is keyof typeof FRAMEWORK {
  return Object.hasOwn(FRAMEWORK, code);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

export function envelope({ code, message, hint, values, details }: Refusal): { readonly error: Refusal } {
  return {
    error: {
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      ...(values === undefined || Object.keys(values).length === 0 ? {} : { values }),
      ...(details ? { details } : {}),
    },
  };
}
