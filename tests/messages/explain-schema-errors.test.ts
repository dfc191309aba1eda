// Errors of JSON Schemas as sentences: the field, the value, the rule; never the words of the library.
import { phrase, sentencesOf } from '../../src/messages/phrase.js';
import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { explainSchemaErrors } from '../../src/messages/explain-schema-errors.js';
import { nearestName } from '../../src/kernel/nearest-name.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { runs } from '../support/runs.js';

function explain(schema: object, value: unknown, verbose = true): string {
  const validate = new Ajv2020({ strict: false, allErrors: true, verbose }).compile(schema);
  expect(validate(value)).toBe(false);
  return sentencesOf(explainSchemaErrors(validate.errors, { name: phrase('request'), value }));
}

test.each([
  [{ type: 'object' }, 3, 'The request cannot be 3: it takes an object.'],
  [
    { properties: { a: { type: ['integer', 'null'] } } },
    { a: 'x' },
    'a cannot be "x": it takes a whole number or null.',
  ],
  [{ required: ['prompt'] }, {}, '"prompt" is missing.'],
  [{ properties: { hooks: { items: { required: ['url'] } } } }, { hooks: [{}] }, '"url" is missing in hooks[0].'],
  [
    { properties: { slots: {} }, additionalProperties: false },
    { slotz: 1 },
    'There is no "slotz"; did you mean "slots"?',
  ],
  [
    { properties: { a: {}, b: {} }, additionalProperties: false },
    { nonsense: 1 },
    'There is no "nonsense"; there are a, b.',
  ],
  [{ properties: { a: { enum: ['x', 'y', 2] } } }, { a: 'z' }, 'a cannot be "z": it takes "x", "y" or 2.'],
  [{ properties: { a: { const: 1 } } }, { a: 2 }, 'a cannot be 2: it takes 1.'],
  [{ properties: { a: { minimum: 1 } } }, { a: 0 }, 'a cannot be 0: the least is 1.'],
  [{ properties: { a: { exclusiveMinimum: 0 } } }, { a: 0 }, 'a cannot be 0: it takes a number above 0.'],
  [{ properties: { a: { maximum: 9 } } }, { a: 10 }, 'a cannot be 10: the most is 9.'],
  [{ properties: { a: { minLength: 1 } } }, { a: '' }, 'The a is empty.'],
  [{ properties: { a: { maxLength: 2 } } }, { a: 'abc' }, 'a has 3 characters: the most is 2 characters.'],
  [{ properties: { a: { minItems: 1 } } }, { a: [] }, 'The a is empty.'],
  [
    { properties: { a: { uniqueItems: true } } },
    { a: [1, 2, 1] },
    'a cannot be a list of 3 items: its items 0 and 2 are the same.',
  ],
  [{ properties: { a: { pattern: '\\S' } } }, { a: ' ' }, 'The a is empty.'],
  [
    { properties: { a: { pattern: '^/', description: 'an absolute path' } } },
    { a: 'x' },
    'a cannot be "x": it takes an absolute path.',
  ],
  [{ properties: { a: { pattern: '^/' } } }, { a: 'x' }, 'a cannot be "x": it does not have the form ^/.'],
  [
    { propertyNames: { minLength: 2 } },
    { a: 1 },
    '"a" cannot be a name in the request: it takes at least 2 characters.',
  ],
  [{ anyOf: [{ type: 'string' }, { type: 'null' }] }, 5, 'The request cannot be 5: it takes a text or null.'],
  [
    { oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    {},
    'The request cannot be an object: it fits none of the forms that it may have (for instance: "a" is missing).',
  ],
  [{ not: {} }, 1, 'The request cannot be 1: it is just what is ruled out.'],
  [JSON.parse('{"if":{},"then":{"type":"string"}}') as object, 1, 'The request cannot be 1: it takes a text.'],
])('%j of %j is explained in a sentence', (schema, value, sentence) => {
  expect(explain(schema, value)).toBe(sentence);
});

test('without the schema in the errors, an unknown member is still named', () => {
  const schema = { properties: { a: {} }, additionalProperties: false };
  expect(explain(schema, { 'b c': 1 }, false)).toBe('There is no "b c".');
});

test('many errors and large values give a short text', () => {
  const members = Array.from({ length: 5000 }, (_, index) => [`${index}${'x'.repeat(900)}`, 'y'.repeat(1000)]);
  const value = Object.fromEntries(members) as object;
  const text = explain({ additionalProperties: { type: 'number' } }, value);
  expect(text.length).toBeLessThan(2500);
  expect(text).toMatch(/And \d+ more problems\.$/);
});

const values = fc.jsonValue({ maxDepth: 2 });
const rules = fc.constantFrom<object>(
  { type: 'string' },
  { type: ['number', 'array'] },
  { enum: [1] },
  { const: 'c' },
  { minimum: 5 },
  { maxLength: 1 },
  { minLength: 3 },
  { pattern: '^q' },
  { minItems: 2 },
  { maxItems: 0 },
  { uniqueItems: true },
  { required: ['r'] },
  { additionalProperties: false },
  { properties: { a: { type: 'null' } } },
  { items: { type: 'boolean' } },
  { multipleOf: 7 },
  { minProperties: 2 },
  { maxProperties: 0 },
  { contains: { type: 'null' } },
  { propertyNames: { pattern: '^z' } },
  { dependentRequired: { a: ['b'] } },
  { prefixItems: [false] },
  { unevaluatedProperties: false },
  { unevaluatedItems: false },
  false as unknown as object,
);

test('no sentence has the words of the library, whatever the schema and the value are', () => {
  const several = fc.array(rules, { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(several, fc.constantFrom('allOf', 'anyOf', 'oneOf'), values, (all, join, value) => {
      const validate = new Ajv2020({ strict: false, allErrors: true }).compile({ [join]: all });
      if (validate(value)) return;
      const text = sentencesOf(explainSchemaErrors(validate.errors, { name: phrase('result'), value }));
      expect(text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')).not.toMatch(LIBRARY_WORDS);
      expect(text).toMatch(/[.?]$/);
      expect(text).not.toContain('undefined');
    }),
    { numRuns: runs(150) },
  );
});

test('the nearest name is found by few edits, and no name by many', () => {
  expect(nearestName('slotz', ['slots', 'engines'])).toBe('slots');
  expect(nearestName('enignes', ['slots', 'engines'])).toBe('engines');
  expect(nearestName('wholly_different', ['slots', 'engines'])).toBeNull();
  expect(nearestName('x'.repeat(10_000), ['slots'])).toBeNull();
});
