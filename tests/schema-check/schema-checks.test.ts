// Schemas from outside run in threads: none of them holds up the event loop, ends the process or writes to its output.
import { describe, expect, test } from 'vitest';
import { CheckLane } from '../../src/schema-check/check-lane.js';
import { SchemaChecks } from '../../src/schema-check/schema-checks.js';

const checks = new SchemaChecks({ quickMs: 250, patientMs: 1000, mostWaiting: 8 });

// A schema whose check visits 2^depth parts.
function doubling(depth: number, keyword: 'allOf' | 'anyOf'): object {
  const steps = Array.from({ length: depth }, (_, index) => [
    `s${index}`,
    { [keyword]: [{ $ref: `#/$defs/s${index + 1}` }, { $ref: `#/$defs/s${index + 1}` }] },
  ]);
  return { $defs: { ...Object.fromEntries(steps), [`s${depth}`]: { type: 'string' } }, $ref: '#/$defs/s0' };
}

// Schemas that differ and all miss the quick deadline.
const slowSchema = (index: number) => ({ pattern: `^(a+)+${index}$` });

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

// How often the event loop turned while the work was under way. Work on this thread would leave it no turn; a busy
// machine only makes each turn slower.
async function countTurns<T>(work: () => Promise<T>): Promise<{ readonly value: T; readonly turns: number }> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setTimeout(count, 1);
  };
  const value = work();
  count();
  await value.finally(() => (isOver = true));
  return { value: await value, turns };
}

describe('hostile schemas', () => {
  const long = 'a'.repeat(40);
  const HOSTILE: readonly (readonly [string, object, unknown])[] = [
    ['a pattern that backtracks for ever', { pattern: '^(a+)+$' }, `${long}!`],
    ['names checked by such a pattern', { patternProperties: { '^(a|aa)+$': true } }, { [`${long}${long}!`]: 1 }],
    ['name patterns', { propertyNames: { pattern: '^(a|a?)+$' } }, { [`${long}!`]: 1 }],
    ['references that double at each step', doubling(40, 'allOf'), 'x'],
    ['uniqueItems on a large list', { uniqueItems: true }, Array.from({ length: 200_000 }, (_, index) => ({ index }))],
  ];

  test('each is stopped at its deadline, and the event loop turns meanwhile', { timeout: 120_000 }, async () => {
    for (const [what, schema, value] of HOSTILE) {
      const { value: problem, turns } = await countTurns(() =>
        checks.explainValue({ schema, value, name: 'result', mustRun: true }),
      );
      expect(problem, what).toBe(
        'result: checking it against the schema took longer than 1 s and was stopped; simplify the schema',
      );
      expect(turns, what).toBeGreaterThan(5);
    }
  });

  test('honest checks pass a hostile one that came before them', { timeout: 60_000 }, async () => {
    const own = new SchemaChecks({ quickMs: 1500, patientMs: 5000, mostWaiting: 8 });
    const order: string[] = [];
    const hostile = own
      .explainValue({ schema: { pattern: '^(a+)+1$' }, value: long, name: 'result', mustRun: true })
      .then(() => order.push('hostile'));
    const honest = [1, 2, 3].map((index) =>
      own
        .explainValue({ schema: { const: index }, value: index, name: 'result' })
        .then((problem) => order.push(problem ?? 'honest')),
    );
    await Promise.all([hostile, ...honest]);
    expect(order).toEqual(['honest', 'honest', 'honest', 'hostile']);
  });

  test(
    'while too many slow ones wait, one more is refused as busy, and a turn that ended is not',
    { timeout: 60_000 },
    async () => {
      const own = new SchemaChecks({ quickMs: 50, patientMs: 500, mostWaiting: 0 });
      const slow = (mustRun: boolean) =>
        own.explainValue({ schema: { pattern: '^(a+)+2$' }, value: long, name: 'result', mustRun });
      await expect(slow(false)).rejects.toMatchObject({ code: 'QUEUE_FULL' });
      expect(await slow(true)).toMatch(/took longer than 0.5 s/);
    },
  );

  test(
    'a caller with many slow schemas delays neither another caller nor the result of a turn',
    { timeout: 60_000 },
    async () => {
      const own = new SchemaChecks({ quickMs: 400, patientMs: 500, mostWaiting: 8 });
      const order: string[] = [];
      const flood = Array.from({ length: 12 }, (_, index) =>
        own
          .explainValue({ schema: slowSchema(index), value: long, name: 'result', caller: 'hostile' })
          .catch(() => {})
          .then(() => order.push('hostile')),
      );
      const other = own
        .explainValue({ schema: { const: 1 }, value: 1, name: 'result', caller: 'other' })
        .then(() => order.push('other'));
      const turn = own
        .explainValue({ schema: { const: 2 }, value: 2, name: 'result', mustRun: true })
        .then(() => order.push('turn'));
      await Promise.all([other, turn]);
      // At most two of the twelve are ahead: the one under way, and one whose turn comes before that of the other
      // caller.
      expect(order.filter((each) => each !== 'hostile')).toEqual(['turn', 'other']);
      expect(order.length).toBeLessThanOrEqual(4);
      await Promise.all(flood);
    },
  );

  test('a caller with too many checks waiting is refused, another one is not', { timeout: 60_000 }, async () => {
    const own = new SchemaChecks({ quickMs: 300, patientMs: 300, mostWaiting: 8, mostPerCaller: 2 });
    const check = (index: number, caller: string) =>
      own.explainSchema({ const: index }, caller).catch(({ code }: { code: string }) => code);
    const checks = [...Array.from({ length: 4 }, (_, index) => check(index, 'hostile')), check(9, 'other')];
    // The first is under way, two wait.
    expect(await Promise.all(checks)).toEqual([null, null, null, 'QUEUE_FULL', null]);
  });

  test(
    'a schema that missed the quick deadline once does not take the quick lane again',
    { timeout: 60_000 },
    async () => {
      const own = new SchemaChecks({ quickMs: 1500, patientMs: 2000, mostWaiting: 8 });
      const slow = () => own.explainValue({ schema: slowSchema(1), value: long, name: 'result', mustRun: true });
      await slow();
      const order: string[] = [];
      const again = [slow(), slow()].map((check) => check.then(() => order.push('slow')));
      const from = performance.now();
      await own.explainValue({ schema: { const: 1 }, value: 1, name: 'result' });
      expect([performance.now() - from < 1500, order]).toEqual([true, []]);
      await Promise.all(again);
    },
  );

  test('one caller leaves room for the slow schemas of others', { timeout: 60_000 }, async () => {
    const own = new SchemaChecks({ quickMs: 50, patientMs: 400, mostWaiting: 4 });
    const check = (index: number, caller: string) =>
      own
        .explainValue({ schema: slowSchema(index), value: long, name: 'result', caller })
        .catch(({ code }: { code: string }) => code);
    await check(0, 'hostile');
    const flood = Array.from({ length: 6 }, () => check(0, 'hostile'));
    const other = check(1, 'other');
    expect((await Promise.all(flood)).filter((outcome) => outcome === 'QUEUE_FULL')).toHaveLength(3);
    expect(await other).toMatch(/took longer than/);
  });

  test('a check that takes more memory than it may have ends its thread and nothing else', async () => {
    const lane = new CheckLane({ deadlineMs: 20_000, idleMs: 1000, cache: 1, memoryMb: 16 });
    const value = `[${'{},'.repeat(2_000_000)}0]`;
    expect(await lane.run({ digest: 'a', schema: 'true', value })).toEqual({ unusable: { problem: 'memory' } });
    expect(await lane.run({ digest: 'a', schema: 'true', value: '1' })).toMatchObject({ id: 0 });
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
});
