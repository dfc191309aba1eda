// Small definitions about runs: the events for webhooks, the refusal of a turn, and the hints of errors.
import { expect, test } from 'vitest';
import { HOOK_EVENTS } from '../../src/run/hook-event.js';
import { refusal, RequestError } from '../../src/run/request-error.js';
import { runError } from '../../src/run/run-error.js';
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

test('a refused call has the hint of its message, else that of its code, if there is one', () => {
  const hint = 'parley doctor lists the installed engines.';
  expect(new RequestError('UNKNOWN_ENGINE', 'x').hint).toBe(hint);
  expect(new RequestError('UNKNOWN_ENGINE', 'x', { hint: 'Look here.' }).hint).toBe('Look here.');
  expect(new RequestError('UNKNOWN_ENGINE', 'x', { hint: '' }).hint).toBeUndefined();
  expect(refusal('UNKNOWN_ENGINE', { engine: 'a', engines: 'b' }).hint).toBe(hint);
  expect(new RequestError('RUN_NOT_FOUND', 'x').hint).toBeUndefined();
});

test('the error of a run has values and a hint only if there are any', () => {
  expect(runError('INTERACTION_PROCESS_LOST')).toStrictEqual({
    code: 'INTERACTION_PROCESS_LOST',
    message: expect.any(String) as string,
  });
  expect(runError('ENGINE_NOT_FOUND.not_installed', { program: 'a', install: 'b' })).toMatchObject({
    values: { program: 'a', install: 'b' },
    hint: expect.stringContaining('parley doctor') as string,
  });
});
