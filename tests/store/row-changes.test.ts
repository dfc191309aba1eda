// The rows that follow from two states of a run: only those that differ.
import { expect, test } from 'vitest';
import { startFold, type FoldedQuestion, type FoldedRun } from '../../src/run/run-fold.js';
import { rowsOf } from '../../src/store/row-changes.js';

const RUN: FoldedRun = startFold(null);
const QUESTION: FoldedQuestion = {
  interaction_id: 'int_1',
  attempt_number: 1,
  question: {},
  state: 'pending',
  asked_at: 1,
  due_at: 2,
  decides: false,
  resolution: null,
};
const RESOLUTION = { at: 3, response: 'A', actor: null, idempotency_key: null, finish: false };
const NOTHING = { reached: undefined, run: {}, handle: null, asked: null, resolved: null, turn: null };

test('the same state changes no row', () => {
  expect(rowsOf(RUN, RUN)).toBeNull();
  expect(rowsOf(RUN, { ...RUN })).toEqual(NOTHING);
});

test('columns that differ are set, and no others', () => {
  const error = { code: 'INTERNAL', message: 'x' } as const;
  const after = { ...RUN, status: 'failed', transitions: 1, error, waited_ms: 5 } as const;
  expect(rowsOf(RUN, after)).toEqual({ ...NOTHING, reached: 'failed', run: { status: 'failed', error, waited_ms: 5 } });
});

test('an edge that leads back to the same state is reported without a column', () => {
  expect(rowsOf(RUN, { ...RUN, transitions: 1 })).toEqual({ ...NOTHING, reached: 'queued' });
});

test('a new question is inserted, an answered one is resolved, and each of them once', () => {
  const asked = { ...RUN, question: QUESTION };
  const answered = { ...RUN, question: { ...QUESTION, state: 'answered', resolution: RESOLUTION } as const };
  expect(rowsOf(RUN, asked)).toEqual({ ...NOTHING, asked: QUESTION });
  expect(rowsOf(asked, answered)).toEqual({
    ...NOTHING,
    resolved: { interaction_id: 'int_1', state: 'answered', resolution: RESOLUTION },
  });
  expect(rowsOf(answered, { ...answered })).toEqual(NOTHING);
  expect(() => rowsOf(RUN, answered)).toThrow('a question is stored before its answer');
});
