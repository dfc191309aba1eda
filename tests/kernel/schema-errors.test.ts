// Validation problems are sentences of ours, never of the schema library.
import { describe, expect, test } from 'vitest';
import { createCheck } from '../../src/kernel/validator.js';

const object = (properties: object, rest: object = {}) => ({ type: 'object', properties, ...rest });

describe('a problem names the place, the rule and what was found', () => {
  test.each<[string, object, unknown, string]>([
    ['a wrong type', object({ version: { type: 'string' } }), { version: 3 }, 'result.version: expected a string, got the number 3'],
    ['several types', object({ a: { type: ['string', 'null'] } }), { a: [] }, 'result.a: expected a string or null, got a list'],
    ['a missing name', object({}, { required: ['version'] }), {}, 'result.version: is missing'],
    ['an unknown name', object({}, { additionalProperties: false }), { 'a b': 1 }, 'result["a b"]: is not a known name here'],
    ['a place in a list', { type: 'array', items: { type: 'integer' } }, [1, 2.5], 'result[1]: expected a whole number, got the number 2.5'],
    ['one of some values', object({ a: { enum: ['x', 'y'] } }), { a: 'z' }, 'result.a: expected one of "x", "y"'],
    ['an empty text', object({ a: { minLength: 1 } }), { a: '' }, 'result.a: is empty'],
    ['a bound', object({ a: { minimum: 1 } }), { a: 0 }, 'result.a: expected at least 1, got the number 0'],
    ['a pattern', object({ a: { pattern: '^x$' } }), { a: 'y' }, 'result.a: does not match the pattern "^x$"'],
    ['a pattern with its rule in words', object({ a: { pattern: '^x$', rule: 'must be x' } }), { a: 'y' }, 'result.a: must be x'],
    ['equal items', { uniqueItems: true }, [1, 2, 1], 'result: items 0 and 2 are equal'],
    ['a control character in a name', object({}, { additionalProperties: false }), { '\u001b[2J': 1 }, 'result["\\u001b[2J"]: is not a known name here'],
    ['alternatives', object({ a: { anyOf: [{ type: 'string' }, { type: 'null' }] } }), { a: 1 }, 'result.a: expected a string, got the number 1; result.a: expected null, got the number 1'],
  ])('%s', (_what, schema, value, sentence) => {
    expect(createCheck(schema, 'result')(value)).toBe(sentence);
  });

  test('many problems are counted and not all listed', () => {
    const problems = createCheck({ items: { type: 'string' } }, 'result')(Array.from({ length: 9 }, (_, index) => index));
    expect(problems).toMatch(/^result\[0\]: .*; and 4 more$/);
  });
});
