// The list of codes with which runs fail, for programs.
import { expect, test } from 'vitest';
import { RUN_ERRORS, STICKY_ERRORS } from '../../src/contract/error-codes.js';
import { contractFor } from '../../src/run/waiting/run-contract.js';

test('each code is listed with its meaning and whether a retry may succeed', () => {
  const listed = contractFor().runErrors;
  expect(listed.map(({ code }) => code)).toEqual(Object.keys(RUN_ERRORS));
  const [first] = Object.entries(RUN_ERRORS);
  expect(listed[0]).toEqual({ code: first?.[0], retryable: first?.[1].retryable, meaning: first?.[1].meaning });
});

test('the codes of sticky sessions are listed only with sticky sessions', () => {
  const sticky = Object.keys(STICKY_ERRORS);
  expect(sticky.length).toBeGreaterThan(0);
  expect(contractFor({ sticky: true }).runErrors.map(({ code }) => code)).toEqual([
    ...Object.keys(RUN_ERRORS),
    ...sticky,
  ]);
});
