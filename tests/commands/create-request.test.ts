// The request for a new run: one schema for all callers, and messages that name the field, the value and the rule.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkRequest, createRunRequest, type CreateRunRequest } from '../../src/commands/create-request.js';
import { RequestError } from '../../src/run/request-error.js';
import { createRunBody } from '../../src/service/schemas.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { runs } from '../support/runs.js';

const RUN = { engine: 'codex', prompt: 'x' };

function problemOf(request: unknown): string | null {
  try {
    checkRequest(request as CreateRunRequest);
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    return (error as RequestError).message;
  }
}

test('the HTTP API checks bodies with the same schema', () => {
  expect(createRunBody).toBe(createRunRequest);
});

test('a request with every member is accepted', () => {
  expect(
    problemOf({
      ...RUN,
      execution_mode: 'interactive',
      cwd: '/work',
      model: 'gpt-5.1',
      permission: 'read-only',
      output_schema: { type: 'object' },
      runtime_options: { max_attempt: 3 },
      labels: Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`label-${index}`, 'x'.repeat(2000)])),
      request_id: 'r'.repeat(200),
      force: true,
    }),
  ).toBeNull();
});

test.each<[unknown, string]>([
  [{ engine: 'codex', prompt: ' \n' }, 'The prompt is empty.'],
  [{ engine: 'codex' }, '"prompt" is missing.'],
  [{ ...RUN, engine: '' }, 'The engine is empty.'],
  [{ ...RUN, engine: 'a\u0000b' }, 'engine cannot be "a\\u0000b": it takes a text without NUL characters.'],
  [{ ...RUN, request_id: 'r'.repeat(201) }, 'request_id has 201 characters: the most is 200 characters.'],
  [{ ...RUN, modl: 'x' }, 'There is no "modl"; did you mean "model"?'],
  [{ ...RUN, permission: 'all' }, 'permission cannot be "all": it takes "read-only", "workspace-write" or "full".'],
  [{ ...RUN, output_schema: 5 }, 'output_schema cannot be 5: it takes an object or true or false.'],
  [{ ...RUN, runtime_options: [] }, 'runtime_options cannot be an empty list: it takes an object.'],
  [{ ...RUN, labels: { a: 1 } }, 'labels.a cannot be 1: it takes a text.'],
  [{ ...RUN, labels: { '': 'x' } }, '"" cannot be a name in labels: it is empty.'],
  [
    { ...RUN, labels: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [String(index), ''])) },
    'labels has 101 members: the most is 100.',
  ],
  [[1], 'The request cannot be a list of 1 items: it takes an object.'],
  [{ ...RUN, model: 5 }, 'model cannot be 5: it takes a text.'],
])('%# a refused request is explained in a sentence', (request, sentence) => {
  expect(problemOf(request)).toBe(sentence);
});

test('the bounds of texts are inclusive', () => {
  expect(problemOf({ ...RUN, cwd: '/' })).toBeNull();
  expect(problemOf({ ...RUN, prompt: 'x'.repeat(10_000_000) })).toBeNull();
  expect(problemOf({ ...RUN, prompt: 'x'.repeat(10_000_001) })).toMatch(/^prompt has 10,?000,?001 characters/);
  expect(problemOf({ ...RUN, labels: { ['n'.repeat(200)]: 'v'.repeat(2000) } })).toBeNull();
  expect(problemOf({ ...RUN, labels: { ['n'.repeat(201)]: '' } })).not.toBeNull();
  expect(problemOf({ ...RUN, labels: { n: 'v'.repeat(2001) } })).not.toBeNull();
});

test('a schema that is too deep is refused before anything recurses into it', () => {
  let schema: object = { type: 'string' };
  for (let depth = 0; depth < 10_000; depth += 1) schema = { items: schema };
  expect(problemOf({ ...RUN, output_schema: schema })).toMatch(/^output_schema cannot be used: ./);
  expect(problemOf({ ...RUN, output_schema: { $async: true } })).toMatch(/^output_schema cannot be used: ./);
});

test('a model name that an engine could take for an option is refused with the rule', () => {
  expect(problemOf({ ...RUN, model: '--yolo' })).toMatch(/^"--yolo" is not a model name: it starts with a letter/);
});

test('no message has the wording of the schema library, and none is long', () => {
  const names = fc.constantFrom(...Object.keys(createRunRequest.shape), 'other');
  fc.assert(
    fc.property(fc.oneof(fc.dictionary(names, fc.jsonValue({ maxDepth: 2 })), fc.jsonValue()), (request) => {
      fc.pre(request !== null && typeof request === 'object');
      const problem = problemOf(request)?.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
      expect(problem ?? '').not.toMatch(LIBRARY_WORDS);
      expect(problem ?? '').not.toContain('undefined');
      expect((problem ?? '').length).toBeLessThan(1000);
    }),
    { numRuns: runs(500) },
  );
});
