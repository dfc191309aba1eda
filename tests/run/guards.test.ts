// NO_FACTS: the facts of an event whose edge has no guard, and the base for other facts.
import { expect, test } from 'vitest';
import { GUARDS, NO_FACTS } from '../../src/run/guards.js';

test('without facts a run neither waits nor continues without a person', () => {
  expect(GUARDS.pending_and_handle(NO_FACTS)).toBe(false);
  expect(GUARDS.not_pending_and_handle(NO_FACTS)).toBe(true);
  expect(GUARDS.reply_not_required(NO_FACTS)).toBe(false);
  expect(GUARDS.sticky(NO_FACTS)).toBe(false);
});

test('a question alone, or a session alone, is not enough to wait', () => {
  expect(GUARDS.pending_and_handle({ ...NO_FACTS, pending: true })).toBe(false);
  expect(GUARDS.pending_and_handle({ ...NO_FACTS, handle: true })).toBe(false);
});
