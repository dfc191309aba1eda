// Hostile JSON Schemas run in threads and are stopped at their deadline: none of them blocks the event loop, ends the
// process or starves the checks of other callers.
import type { Phrase } from '../../src/kernel/fill-template.js';
import { phrase, sentencesOf } from '../../src/messages/phrase.js';
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

// Different schemas that all miss the quick deadline.
const slowSchema = (index: number) => ({ pattern: `^(a+)+${index}$` });

// How many event-loop ticks passed during the work. Work on this thread would allow none; a busy machine only makes
// each tick slower.
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
        checks.explainValue({ schema, value, name: phrase('result'), mustRun: true }),
      );
      expect(sentencesOf(problem ?? []), what).toBe(
        'result: checking it against the schema took longer than 1 s and was stopped; simplify the schema',
      );
      expect(turns, what).toBeGreaterThan(5);
    }
  });

  test('honest checks pass a hostile one that came before them', { timeout: 60_000 }, async () => {
    const own = new SchemaChecks({ quickMs: 1500, patientMs: 5000, mostWaiting: 8 });
    const order: string[] = [];
    const hostile = own
      .explainValue({ schema: { pattern: '^(a+)+1$' }, value: long, name: phrase('result'), mustRun: true })
      .then(() => order.push('hostile'));
    const honest = [1, 2, 3].map((index) =>
      own
        .explainValue({ schema: { const: index }, value: index, name: phrase('result') })
        .then((problem) => order.push(problem === null ? 'honest' : sentencesOf(problem))),
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
        own.explainValue({ schema: { pattern: '^(a+)+2$' }, value: long, name: phrase('result'), mustRun });
      await expect(slow(false)).rejects.toMatchObject({ code: 'QUEUE_FULL' });
      expect(sentencesOf((await slow(true)) ?? [])).toMatch(/took longer than 0.5 s/);
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
          .explainValue({ schema: slowSchema(index), value: long, name: phrase('result'), caller: 'hostile' })
          .catch(() => {})
          .then(() => order.push('hostile')),
      );
      const other = own
        .explainValue({ schema: { const: 1 }, value: 1, name: phrase('result'), caller: 'other' })
        .then(() => order.push('other'));
      const turn = own
        .explainValue({ schema: { const: 2 }, value: 2, name: phrase('result'), mustRun: true })
        .then(() => order.push('turn'));
      await Promise.all([other, turn]);
      // At most two of the twelve are ahead: the running one, and one whose turn comes before that of the other caller.
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
    // The first is running, two wait.
    expect(await Promise.all(checks)).toEqual([null, null, null, 'QUEUE_FULL', null]);
  });

  test(
    'a schema that missed the quick deadline once does not take the quick lane again',
    { timeout: 60_000 },
    async () => {
      // The patient deadline is the shorter one: in the quick lane, both slow checks would hold up the honest one until
      // the first of them has missed its patient deadline.
      const own = new SchemaChecks({ quickMs: 2000, patientMs: 1500, mostWaiting: 8 });
      const slow = () =>
        own.explainValue({ schema: slowSchema(1), value: long, name: phrase('result'), mustRun: true });
      await slow();
      const order: string[] = [];
      const again = [slow(), slow()].map((check) => check.then(() => order.push('slow')));
      await own.explainValue({ schema: { const: 1 }, value: 1, name: phrase('result') });
      expect(order).toEqual([]);
      await Promise.all(again);
    },
  );

  test('one caller leaves room for the slow schemas of others', { timeout: 60_000 }, async () => {
    const own = new SchemaChecks({ quickMs: 50, patientMs: 400, mostWaiting: 4 });
    const check = (index: number, caller: string) =>
      own
        .explainValue({ schema: slowSchema(index), value: long, name: phrase('result'), caller })
        .catch(({ code }: { code: string }) => code);
    await check(0, 'hostile');
    const flood = Array.from({ length: 6 }, () => check(0, 'hostile'));
    const other = check(1, 'other');
    expect((await Promise.all(flood)).filter((outcome) => outcome === 'QUEUE_FULL')).toHaveLength(3);
    expect(sentencesOf((await other) as readonly Phrase[])).toMatch(/took longer than/);
  });

  test('a check that takes more memory than it may have ends its thread and nothing else', async () => {
    const lane = new CheckLane({ deadlineMs: 20_000, idleMs: 1000, cache: 1, memoryMb: 16 });
    const value = `[${'{},'.repeat(2_000_000)}0]`;
    expect(await lane.run({ digest: 'a', schema: 'true', value })).toEqual({ unusable: { problem: 'memory' } });
    expect(await lane.run({ digest: 'a', schema: 'true', value: '1' })).toMatchObject({ id: 0 });
  });
});
