// JSON Schemas of callers and engines: which ones are refused, how values are explained, and that a schema cannot write
// to the output of the process. tests/slow/schema-deadlines.test.ts has those that exceed their deadline.
import { describe, expect, test } from 'vitest';
import { SchemaChecks } from '../../src/schema-check/schema-checks.js';

const checks = new SchemaChecks({ quickMs: 250, patientMs: 1000, mostWaiting: 8 });

function nested(depth: number): object {
  return JSON.parse(`${'{"not":'.repeat(depth)}{}${'}'.repeat(depth)}`) as object;
}

const many = (count: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, index) => [`name${index}`, { type: 'string', description: 'x'.repeat(100) }]),
  );

describe('a schema that cannot be used is refused with a sentence', () => {
  test.each<[string, object | boolean, RegExp]>([
    ['$async', { $async: true }, /^it uses \$async, which Parley does not support$/],
    ['$async below the root', { properties: { a: { $async: true } } }, /it uses \$async/],
    ['$dynamicRef', { $dynamicRef: '#x' }, /it uses \$dynamicRef/],
    ['$recursiveRef', { items: { $recursiveRef: '#' } }, /it uses \$recursiveRef/],
    [
      'a remote reference',
      { $ref: 'https://example.org/schema' },
      /its \$ref "https:\/\/example\.org\/schema" leads out of the schema/,
    ],
    [
      'a reference to the schema of schemas',
      { $ref: 'https://json-schema.org/draft/2020-12/schema' },
      /leads out of the schema/,
    ],
    ['a reference that leads nowhere', { $ref: '#/$defs/none' }, /its \$ref "#\/\$defs\/none" leads nowhere/],
    [
      'another draft',
      { $schema: 'http://json-schema.org/draft-07/schema#' },
      /its \$schema must be "https:\/\/json-schema\.org\/draft\/2020-12\/schema", or be left out/,
    ],
    ['a large one', { properties: many(2000) }, /it is larger than 256 KiB/],
    ['1.2 MB', { properties: many(9000) }, /it has more than 10000 parts|it is larger than 256 KiB/],
    ['a huge enum', { enum: Array.from({ length: 1_000_000 }, (_, index) => index) }, /it has more than 10000 parts/],
    ['deep nesting', nested(5000), /it is nested deeper than 64 levels/],
    ['a type that is none', { type: 'nonsense' }, /^type cannot be "nonsense"/],
    ['a pattern that is none', { pattern: '[' }, /one of its patterns is not a regular expression/],
    ['a negative length', { minLength: -1 }, /^minLength cannot be -1: /],
  ])('%s', async (_what, schema, sentence) => {
    expect(await checks.explainSchema(schema)).toMatch(sentence);
  });

  test.each<[string, object | boolean]>([
    ['a member that is called $async', { properties: { $async: { type: 'string' }, $ref: { type: 'string' } } }],
    ['such a name in data', { const: { $async: true, $ref: 'https://example.org' } }],
    [
      '__proto__ and constructor',
      JSON.parse(
        '{"properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}},"required":["__proto__"]}',
      ) as object,
    ],
    ['keywords that nobody knows, and formats', { 'x-note': 1, format: 'email' }],
    ['true', true],
    ['references inside it', { $defs: { a: { type: 'string' } }, items: { $ref: '#/$defs/a' } }],
  ])('but not %s', async (_what, schema) => {
    expect(await checks.explainSchema(schema)).toBeNull();
  });
});

describe('values', () => {
  test('a valid value is accepted, an invalid one is explained, and the compiled schema is reused', async () => {
    const schema = { type: 'object', properties: { version: { type: 'string' } }, required: ['version'] };
    expect(await checks.explainValue({ schema, value: { version: '1' }, name: 'result' })).toBeNull();
    expect(await checks.explainValue({ schema, value: { version: 1 }, name: 'result' })).toMatch(
      /^version cannot be 1: /,
    );
    expect(await checks.explainValue({ schema, value: {}, name: 'result' })).toBe('"version" is missing.');
  });

  test('one schema leaves nothing behind for the next', async () => {
    const polluting = JSON.parse(
      '{"properties":{"__proto__":{"default":{"polluted":true}}},"default":{"__proto__":{"polluted":true}}}',
    ) as object;
    expect(
      await checks.explainValue({
        schema: polluting,
        value: JSON.parse('{"__proto__":{"polluted":true}}'),
        name: 'result',
      }),
    ).toBeNull();
    expect(
      await checks.explainValue({ schema: { type: 'object', required: ['polluted'] }, value: {}, name: 'result' }),
    ).toBe('"polluted" is missing.');
  });

  test('a schema that refers to itself without end is no defect', async () => {
    expect(await checks.explainValue({ schema: { $ref: '#' }, value: 1, name: 'result' })).toMatch(
      /refers to itself without end/,
    );
  });

  test('a value that is nested too deeply is refused', async () => {
    const value = JSON.parse(`${'['.repeat(10_000)}${']'.repeat(10_000)}`) as unknown;
    expect(await checks.explainValue({ schema: true, value, name: 'result' })).toBe(
      'result: is nested deeper than 200 levels',
    );
  });
});

test('nothing of a schema reaches the output of the process', async () => {
  const seen: string[] = [];
  const write = process.stderr.write;
  process.stderr.write = ((text: string) => seen.push(text) > 0) as typeof write;
  try {
    for (const format of ['\u001b]0;owned\u0007', 'x\n{"level":50,"msg":"forged"}', 'email']) {
      expect(await checks.explainSchema({ type: 'string', format })).toBeNull();
      expect(
        await checks.explainValue({ schema: { format, [`\u001b[2J${format}`]: 1 }, value: 'x', name: 'result' }),
      ).toBeNull();
    }
  } finally {
    process.stderr.write = write;
  }
  expect(seen).toEqual([]);
});
