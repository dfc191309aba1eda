// Small definitions about runs: the events for webhooks, and the refusal of a turn.
import { expect, test } from 'vitest';
import { HOOK_EVENTS } from '../../src/run/hook-event.js';
import { refuseTurn } from '../../src/run/turn-refused-error.js';

test('webhooks can receive waiting and ended runs, and silent turns', () => {
  expect(HOOK_EVENTS).toEqual(['waiting_user', 'succeeded', 'failed', 'canceled', 'silent']);
});

test('a refused turn has the code and the message of the error of its run', () => {
  expect(refuseTurn('ENGINE_NOT_FOUND.configured', { program: 'codex', place: '/bin/no' })).toMatchObject({
    name: 'TurnRefusedError',
    message: 'codex not found: /bin/no is not a program.',
    error: { code: 'ENGINE_NOT_FOUND', values: { program: 'codex', place: '/bin/no' } },
  });
});
