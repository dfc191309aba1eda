// Bad requests, settings, options, schemas and answers: the exact sentence in English, and in Chinese from the code and
// the values alone.
import { PassThrough } from 'node:stream';
import { validatorCompiler } from 'fastify-type-provider-zod';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { z } from 'zod';
import { chooseLanguage, explainRefusal } from '../../src/cli/language/language.js';
import { checkRequest } from '../../src/commands/create-request.js';
import { loadHooks } from '../../src/hooks/load-hooks.js';
import type { ExplainedError } from '../../src/messages/explain-error.js';
import { explainZodIssues } from '../../src/messages/explain-zod-issues.js';
import { phrase } from '../../src/messages/phrase.js';
import { RequestError, refusal } from '../../src/run/request-error.js';
import { parseRuntimeOptions } from '../../src/run/runtime-options.js';
import { SchemaChecks } from '../../src/schema-check/schema-checks.js';
import { checkStrength } from '../../src/service/access/operator-token.js';
import { createRunBody, historyQuery, listQuery, logsQuery, replyBody, retryBody } from '../../src/service/schemas.js';
import { checkSettings } from '../../src/settings/read-settings.js';
import { BAD_INPUTS, type BadInput } from './bad-inputs.js';

const checks = new SchemaChecks();
const BODIES = { create: createRunBody, reply: replyBody, retry: retryBody } as const;
const QUERIES = { list: listQuery, history: historyQuery, logs: logsQuery } as const;

function refuseRequest(schema: z.ZodType, value: unknown, part: 'body' | 'query'): RequestError {
  const check = validatorCompiler({ schema } as never) as unknown as (data: unknown) => { error?: never[] };
  const { error = [] } = check(value);
  const problems = explainZodIssues(error, { name: phrase(part), value, schema });
  return refusal('INVALID_ARGUMENT.request', { problem: problems.flatMap(({ sentences }) => sentences) });
}

async function refuse({ kind, name = '', value }: BadInput): Promise<RequestError> {
  switch (kind) {
    case 'body':
      return refuseRequest(BODIES[name as keyof typeof BODIES], value, 'body');
    case 'query':
      return refuseRequest(QUERIES[name as keyof typeof QUERIES], value, 'query');
    case 'request':
      return caught(() => checkRequest(value as never));
    case 'setting':
      return caught(() => void checkSettings('config.json', value as never));
    case 'option':
      return caught(() => void parseRuntimeOptions(value as never));
    case 'webhook':
      return caught(() => void loadHooks([value as never], { SHORT: 'short', ODD: 'whsec_?' }));
    case 'token':
      return caught(() => checkStrength(value as string));
    case 'schema':
      return refusal('INVALID_ARGUMENT.output_schema', {
        problem: (await checks.explainSchema(value as object)) ?? [],
      });
    case 'answer': {
      const [schema, answer] = value as [object, unknown];
      const problem = await checks.explainValue({ schema, value: answer, name: phrase('answer') });
      return refusal('INVALID_ARGUMENT.answer_form', { problem: problem ?? [] });
    }
  }
}

function caught(act: () => void): RequestError {
  try {
    act();
  } catch (error) {
    if (error instanceof RequestError) return error;
    throw error;
  }
  throw new Error('the input was accepted');
}

// As a server or a worker sends it.
function received({ code, message, values, hint }: RequestError): ExplainedError {
  return JSON.parse(JSON.stringify({ code, message, values, hint })) as ExplainedError;
}

beforeEach(() => chooseLanguage([], { env: { PARLEY_LANG: 'zh' }, stderr: new PassThrough() }));
// The language is a value of the module, which other tests of this process share.
afterEach(() => chooseLanguage([], { env: {}, stderr: new PassThrough() }));

test.each(BAD_INPUTS)('$kind $name: $english', async (input) => {
  const error = await refuse(input);
  const chinese = explainRefusal(received(error)).message;
  expect(error.message).toBe(input.english);
  expect(chinese).toBe(input.chinese);
});
