// Requests that zod refuses are explained in our words, for each value that a client may send.
import { validatorCompiler } from 'fastify-type-provider-zod';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { z } from 'zod';
import { explainZodIssues } from '../../src/kernel/explain-zod-issues.js';
import {
  createRunBody,
  historyQuery,
  inboxQuery,
  listQuery,
  logsQuery,
  replyBody,
  retryBody,
} from '../../src/service/schemas.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { runs } from '../support/runs.js';

function explain(schema: z.ZodType, value: unknown): string | null {
  const check = validatorCompiler({ schema } as never) as unknown as (data: unknown) => { error?: never[] };
  const { error } = check(value);
  if (!error) return null;
  return explainZodIssues(error, { name: 'body', value, schema })
    .map(({ message }) => message)
    .join(' ');
}

const RUN = { engine: 'codex', prompt: 'x' };

test.each<[z.ZodType, unknown, string]>([
  [createRunBody, { engine: 'codex', prompt: '  ' }, 'The prompt is empty.'],
  [createRunBody, { engine: 'codex' }, '"prompt" is missing.'],
  [createRunBody, { ...RUN, prompt: 5 }, 'prompt cannot be 5: it takes a text.'],
  [createRunBody, { ...RUN, modl: 'x' }, 'There is no "modl"; did you mean "model"?'],
  [
    createRunBody,
    { ...RUN, engine: 'a\u0000b' },
    'engine cannot be "a\\u0000b": it takes a text without NUL characters.',
  ],
  [createRunBody, { ...RUN, output_schema: 5 }, 'output_schema cannot be 5: it takes an object or true or false.'],
  [createRunBody, { ...RUN, labels: { a: 1 } }, 'labels.a cannot be 1: it takes a text.'],
  [createRunBody, { ...RUN, labels: { '': 'x' } }, '"" cannot be a name in labels: it is empty.'],
  [
    createRunBody,
    { ...RUN, permission: 'all' },
    'permission cannot be "all": it takes "read-only", "workspace-write" or "full".',
  ],
  [createRunBody, [1], 'The body cannot be a list of 1 items: it takes an object.'],
  [retryBody, { key: 1 }, 'There is no "key"; there are request_id, force.'],
  [listQuery, { limit: '0' }, 'limit cannot be "0": the least is 1.'],
  [listQuery, { limit: 'many' }, 'limit cannot be "many": it takes a whole number from 1 to 500.'],
  [listQuery, { limit: '1.5' }, 'limit cannot be "1.5": it takes a whole number from 1 to 500.'],
  [listQuery, { label: 'x' }, 'label cannot be "x": it takes name=value.'],
  [historyQuery, { from_ts: 'today' }, 'from_ts cannot be "today": it takes a time such as 2026-01-31T12:00:00Z.'],
  [replyBody, { interaction_id: '' }, 'interaction_id is empty.'],
])('%# a refused request is explained in a sentence', (schema, value, sentence) => {
  expect(explain(schema, value)).toBe(sentence);
});

test('no message has the words of the library, whatever is sent', () => {
  const schemas = [createRunBody, replyBody, retryBody, listQuery, inboxQuery, historyQuery, logsQuery];
  const names = [...new Set(schemas.flatMap((schema) => Object.keys('shape' in schema ? schema.shape : {}))), 'other'];
  const values = fc.dictionary(fc.constantFrom(...names), fc.jsonValue({ maxDepth: 1 }));
  fc.assert(
    fc.property(fc.constantFrom<z.ZodType>(...schemas), fc.oneof(values, fc.jsonValue()), (schema, value) => {
      const text = explain(schema, value);
      if (text === null) return;
      expect(text).not.toBe('');
      expect(text).not.toContain('undefined');
      expect(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(LIBRARY_WORDS);
    }),
    { numRuns: runs(500) },
  );
});
