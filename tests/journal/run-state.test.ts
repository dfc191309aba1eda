// The folded state of a stored run, and the run after an append, for cancel requests with and without an event.
import { expect, test } from 'vitest';
import { recordedCancel, stateOf, withState } from '../../src/journal/run-state.js';
import { EMPTY_JOURNAL, type RunRecord } from '../../src/store/store.js';
import { newRun, T0 } from '../store/conformance.js';

const REQUEST = { at: T0, actor: { kind: 'user', name: 'ann' } } as const;
const UNRECORDED = { ...REQUEST, unrecorded: true } as const;

function runWith(cancel_requested: RunRecord['cancel_requested']): RunRecord {
  const { run_id, request_id, spec, created_at } = newRun(1);
  return {
    run_id,
    request_id,
    spec,
    status: 'running',
    attempt_number: 1,
    epoch: 1,
    error: null,
    result: null,
    cancel_requested,
    waited_ms: 0,
    crashes: 0,
    created_at,
    updated_at: created_at,
    heads: EMPTY_JOURNAL,
  };
}

test('the state has a cancel request only if an event records it', () => {
  expect([null, REQUEST, UNRECORDED].map((request) => recordedCancel(runWith(request)))).toEqual([null, REQUEST, null]);
  expect([null, REQUEST, UNRECORDED].map((request) => stateOf(runWith(request)).cancel_requested)).toEqual([
    null,
    REQUEST,
    null,
  ]);
});

test('the run keeps an unrecorded request until an event records one', () => {
  const run = runWith(UNRECORDED);
  const state = stateOf(run);
  expect(withState(run, state)).toEqual(run);
  expect(withState(run, { ...state, cancel_requested: REQUEST })).toEqual(runWith(REQUEST));
  expect(withState(runWith(null), state).cancel_requested).toBeNull();
});
