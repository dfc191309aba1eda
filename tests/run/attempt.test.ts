// How turns are numbered, as a pure rule.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { DEFAULT_MAX_ATTEMPT, FIRST_ATTEMPT, nextAttempt } from '../../src/run/attempt.js';
import { INITIAL_STATE, step, type RunEvent, type RunState } from '../../src/run/statechart.js';
import { runs } from '../support/runs.js';

const FACTS = { pending: true, handle: true, requireUserReply: false, sticky: false };
const ANSWERS: ReadonlySet<RunEvent> = new Set<RunEvent>([
  'interaction.reply.accepted',
  'interaction.auto_decide.timeout',
]);

test('the first turn of an interactive run is attempt 1 and each answer starts the next one', () => {
  expect(FIRST_ATTEMPT).toBe(1);
  const answers = ['a reply', 'another reply', 'a third'];
  const attempts = answers.reduce(
    (numbers) => [...numbers, nextAttempt('interactive', numbers.at(-1) ?? 0)],
    [FIRST_ATTEMPT],
  );
  expect(attempts).toEqual([1, 2, 3, 4]);
});

test('an automatic decision is an answer too, so it also grows the attempt by one', () => {
  const events: RunEvent[] = [
    'turn.started',
    'turn.needs_input',
    'interaction.auto_decide.timeout',
    'turn.started',
    'turn.needs_input',
    'interaction.reply.accepted',
    'turn.started',
  ];
  let state: RunState = INITIAL_STATE;
  let attempt = FIRST_ATTEMPT;
  const running: number[] = [];
  for (const event of events) {
    const taken = step(state, event, FACTS);
    expect(taken.legal, event).toBe(true);
    if (taken.legal) state = taken.edge.to;
    if (ANSWERS.has(event)) attempt = nextAttempt('interactive', attempt);
    if (state === 'running') running.push(attempt);
  }
  expect(running).toEqual([1, 2, 3]);
});

test('the attempt number of an auto run is always 1', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1_000_000 }), (attempt) => nextAttempt('auto', attempt) === 1),
    { seed: 2, numRuns: runs(200) },
  );
});

test('an interactive attempt always grows by exactly one', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 1_000_000 }),
      (attempt) => nextAttempt('interactive', attempt) === attempt + 1,
    ),
    { seed: 3, numRuns: runs(200) },
  );
});

test('a run may take a hundred turns unless it says otherwise', () => {
  expect(DEFAULT_MAX_ATTEMPT).toBe(100);
});
