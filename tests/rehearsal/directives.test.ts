import { array, assert, constantFrom, oneof, property, string } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseDirectives } from '../../src/rehearsal/directives.js';
import { expectLinear } from '../support/growth.js';
import { runs } from '../support/runs.js';

describe('words', () => {
  test.each([
    ['[[answer All is well.]]', { type: 'answer', text: 'All is well.' }],
    ['[[ask Which database?]]', { type: 'ask', question: 'Which database?', options: [] }],
    ['[[ask Which? | Postgres|SQLite ]]', { type: 'ask', question: 'Which?', options: ['Postgres', 'SQLite'] }],
    ['[[approve rm -r build | true]]', { type: 'approve', command: 'rm -r build | true' }],
    ['[[done]]', { type: 'done', result: null }],
    ['[[done {"files":[[1],[2]]}]]', { type: 'done', result: { files: [[1], [2]] } }],
    ['[[done "a ]] b"]]', { type: 'done', result: 'a ]] b' }],
    ['[[tool echo hi > a.txt; exit 3]]', { type: 'tool', command: 'echo hi > a.txt; exit 3' }],
    ['[[tool [ -f a ]]]', { type: 'tool', command: '[ -f a ]' }],
    ['[[file a b.txt]]', { type: 'file', name: 'a b.txt' }],
    ['[[events 1000 64]]', { type: 'events', count: 1000, bytes: 64 }],
    ['[[sleep 20]]', { type: 'sleep', ms: 20 }],
    ['[[stderr 3]]', { type: 'stderr', lines: 3 }],
    ['[[answer two\nlines]]', { type: 'answer', text: 'two\nlines' }],
    ...['fail', 'crash', 'hang', 'exit0', 'nosession', 'othersession', 'refuse', 'orphan', 'utf8'].map(
      (type) => [`[[${type}]]`, { type }] as const,
    ),
  ] as const)('%s is a step', (prompt, step) => {
    expect(parseDirectives(prompt)).toEqual([step]);
  });
});

describe('text that is not a directive', () => {
  test.each([
    'Say hello',
    '',
    '[[',
    ']]',
    '[[]]',
    '[[ ]]',
    '[[unknown x]]',
    '[[Answer x]]',
    '[answer x]',
    '[[answer x]',
    '[[ answer x]]',
    '[[answers x]]',
    '[[answer]]',
    '[[answer ]]',
    '[[ask]]',
    '[[ask |a|b]]',
    '[[approve]]',
    '[[approve ]]',
    '[[done {"a":}]]',
    '[[done {]]',
    '[[tool]]',
    '[[file]]',
    '[[file ../a]]',
    '[[file /etc/x]]',
    '[[file ..]]',
    '[[events]]',
    '[[events 5]]',
    '[[events 5 x]]',
    '[[events 5 5 5]]',
    '[[events -1 5]]',
    '[[events 99999999999 1]]',
    '[[sleep]]',
    '[[sleep soon]]',
    '[[sleep 1.5]]',
    '[[sleep 2147483648]]',
    '[[stderr x]]',
    '[[crash now]]',
    '[[hang 5]]',
  ])('%s is plain text', (prompt) => {
    expect(parseDirectives(prompt)).toEqual([]);
  });
});

describe('scripts', () => {
  test('several directives are steps in their order, and the text around them is left out', () => {
    expect(parseDirectives('First [[sleep 1]] then [[nonsense]] and\n[[ask Go on?|yes]][[done 1]] bye')).toEqual([
      { type: 'sleep', ms: 1 },
      { type: 'ask', question: 'Go on?', options: ['yes'] },
      { type: 'done', result: 1 },
    ]);
  });

  test('a malformed directive does not swallow the next one', () => {
    expect(parseDirectives('[[sleep soon [[crash]]')).toEqual([{ type: 'crash' }]);
    expect(parseDirectives('[[done {]] [[answer x]]')).toEqual([{ type: 'answer', text: 'x' }]);
  });

  test('no text at all makes it throw, and the steps are data', () => {
    const pieces = constantFrom(
      '[[',
      ']]',
      ']',
      '|',
      ' ',
      '\n',
      '{"a":1}',
      '[1]',
      'answer',
      'ask',
      'approve',
      'done',
      'tool',
      'file',
      'events',
      'sleep',
      'crash',
      '5',
      'é\u2028',
      '\0',
      '\ud800',
    );
    assert(
      property(
        oneof(
          string({ unit: 'binary' }),
          array(pieces, { maxLength: 30 }).map((parts) => parts.join('')),
        ),
        (prompt) => {
          const steps = parseDirectives(prompt);
          expect(JSON.parse(JSON.stringify(steps))).toEqual(steps);
        },
      ),
      { numRuns: runs(300) },
    );
  });

  test('a long text of opening brackets is read in linear time', async () => {
    await expectLinear(30_000, (times) => expect(parseDirectives('[[answer '.repeat(times))).toEqual([]));
    await expectLinear(30_000, (times) => expect(parseDirectives(`${'[[sleep '.repeat(times)}]]`)).toEqual([]));
    expect(parseDirectives(`${'[[done {'.repeat(300)}${']]'.repeat(300)}`)).toEqual([]);
  });
});
