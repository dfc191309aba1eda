// Runtime options: defaults, bounds, and messages that name the option, the value and the rule.
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DEFAULT_OPTIONS, LONGEST_SEC } from '../../src/run/default-options.js';
import { RequestError } from '../../src/run/request-error.js';
import { parseRuntimeOptions, runtimeOptions } from '../../src/run/runtime-options.js';
import type { Json } from '../../src/kernel/json.js';
import { LIBRARY_WORDS } from '../support/library-words.js';
import { runs } from '../support/runs.js';

function problemOf(input: Json): string | null {
  try {
    parseRuntimeOptions(input);
    return null;
  } catch (error) {
    expect(error).toBeInstanceOf(RequestError);
    expect((error as RequestError).code).toBe('INVALID_ARGUMENT');
    return (error as RequestError).message;
  }
}

test('a run that sets no options has the defaults, in the same order however they are asked for', () => {
  expect(parseRuntimeOptions(undefined)).toEqual(DEFAULT_OPTIONS);
  expect(JSON.stringify(parseRuntimeOptions({}))).toBe(JSON.stringify(DEFAULT_OPTIONS));
  expect(Object.keys(runtimeOptions.shape)).toEqual(Object.keys(DEFAULT_OPTIONS));
});

test('the defaults are those in the table of docs/reference/cli.md', () => {
  const page = readFileSync(new URL('../../docs/reference/cli.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` \| `?(\w+)`? \|/gm)].filter(
    ([, name]) => (name ?? '') in DEFAULT_OPTIONS,
  );
  expect(Object.fromEntries(rows.map(([, name, value]) => [name, value]))).toEqual(
    Object.fromEntries(Object.entries(DEFAULT_OPTIONS).map(([name, value]) => [name, String(value)])),
  );
});

test('max_attempt takes 1', () => {
  expect(parseRuntimeOptions({ max_attempt: 1 }).max_attempt).toBe(1);
});

test('a name that resembles no option gets no suggestion', () => {
  expect(problemOf({ colour: 1 })).toMatch(/^There is no runtime option "colour"\. The options are /);
});

test('the longest time is a hundred years of 365 days', () => {
  expect(LONGEST_SEC / (365 * 24 * 3600)).toBe(100);
});

test('an option of the run wins over the default of the operator, which wins over the built-in default', () => {
  const operator = { idle_timeout_sec: 60, turn_timeout_sec: 3600 };
  expect(parseRuntimeOptions(undefined, operator)).toEqual({ ...DEFAULT_OPTIONS, ...operator });
  expect(parseRuntimeOptions({ idle_timeout_sec: 5, turn_timeout_sec: null }, operator)).toEqual({
    ...DEFAULT_OPTIONS,
    idle_timeout_sec: 5,
    turn_timeout_sec: null,
  });
});

const SECONDS = [
  'session_timeout_sec',
  'turn_timeout_sec',
  'idle_timeout_sec',
  'tool_timeout_sec',
  'silence_notice_sec',
];

describe.each(SECONDS)('%s', (name) => {
  test('takes a number above 0, at most a hundred years', () => {
    for (const value of [0.001, 1, LONGEST_SEC])
      expect(parseRuntimeOptions({ [name]: value })).toMatchObject({ [name]: value });
    for (const value of [0, -1, LONGEST_SEC + 1, '5', true, [], {}])
      expect(problemOf({ [name]: value }), JSON.stringify(value)).toMatch(
        new RegExp(`^Runtime option ${name} cannot be .*: it takes seconds: a number above 0, at most ${LONGEST_SEC}`),
      );
  });

  test('is null only for the turn as a whole', () => {
    const problem = problemOf({ [name]: null });
    if (name === 'turn_timeout_sec') expect(problem).toBeNull();
    else expect(problem).toContain('cannot be null');
  });
});

test.each<[Json, string]>([
  [{ max_attempt: 0 }, 'Runtime option max_attempt cannot be 0: it takes a whole number of at least 1.'],
  [{ max_attempt: 1.5 }, 'Runtime option max_attempt cannot be 1.5: it takes a whole number of at least 1.'],
  [{ max_attempt: 2 ** 53 }, `Runtime option max_attempt cannot be ${2 ** 53}: it takes a whole number of at least 1.`],
  [
    { interactive_require_user_reply: 'yes' },
    'Runtime option interactive_require_user_reply cannot be "yes": it takes true or false.',
  ],
  [
    { auto_decide_policy: 'coin' },
    'Runtime option auto_decide_policy cannot be "coin": it takes "engine_judgement" or "use_default".',
  ],
  [
    { max_atempt: 1 },
    'There is no runtime option "max_atempt". Did you mean "max_attempt"? The options are ' +
      `${Object.keys(DEFAULT_OPTIONS).join(', ')}.`,
  ],
  [[], 'runtime_options takes an object.'],
  [null, 'runtime_options takes an object.'],
])('%j is refused with the option, the value and the rule', (input, message) => {
  expect(problemOf(input)).toBe(message);
});

test('names of built-in members are not options', () => {
  for (const name of ['constructor', 'toString', '__proto__'])
    expect(problemOf(JSON.parse(`{${JSON.stringify(name)}:5}`) as Json)).toContain(`no runtime option "${name}"`);
});

test('no message has the wording of the schema library', () => {
  const names = fc.constantFrom(...Object.keys(DEFAULT_OPTIONS), 'other');
  fc.assert(
    fc.property(fc.dictionary(names, fc.jsonValue({ maxDepth: 1 })), (input) => {
      const problem = problemOf(input as Json)?.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""');
      expect(problem ?? '').not.toMatch(LIBRARY_WORDS);
      expect(problem ?? '').not.toContain('undefined');
    }),
    { numRuns: runs(500) },
  );
});
