// The descriptions of a turn's limits.
import { expect, test } from 'vitest';
import { describeSeconds, limitReached } from '../../src/run/turn-limits.js';

const LIMITS = { turn_timeout_sec: 90, idle_timeout_sec: 1800, tool_timeout_sec: 7200 };

test.each([
  [1, '1 second'],
  [59, '59 seconds'],
  [60, '1 minute'],
  [90, '90 seconds'],
  [300, '5 minutes'],
  [3600, '1 hour'],
  [5400, '90 minutes'],
  [7200, '2 hours'],
])('%i seconds are %s', (seconds, text) => {
  expect(describeSeconds(seconds)).toBe(text);
});

test('each limit names itself, its time and four times as much', () => {
  expect(limitReached('turn_timeout_sec', LIMITS).message).toBe(
    'Stopped: the turn took longer than 90 seconds (turn_timeout_sec). ' +
      'Allow more: -o turn_timeout_sec=360, or null for no limit.',
  );
  expect(limitReached('idle_timeout_sec', LIMITS).message).toBe(
    'Stopped after 30 minutes without output (idle_timeout_sec). Allow more: -o idle_timeout_sec=7200.',
  );
  expect(limitReached('tool_timeout_sec', LIMITS).message).toBe(
    'Stopped: a tool call ran for 2 hours without output (tool_timeout_sec). Allow more: -o tool_timeout_sec=28800.',
  );
});

test('a limit that is not known is explained without its time', () => {
  for (const limits of [undefined, { ...LIMITS, turn_timeout_sec: null }])
    expect(limitReached('turn_timeout_sec', limits)).toEqual({
      code: 'TURN_TIMEOUT',
      message: 'Stopped: the turn took longer than its limit (turn_timeout_sec).',
    });
});
