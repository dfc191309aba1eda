// The error of a turn that reached one of its limits: it names the limit, its option, and how to allow more.
import type { Phrase } from '../kernel/fill-template.js';
import { phrase, textOf } from '../messages/phrase.js';
import { runError, type RunError } from './run-error.js';
import type { RuntimeOptions } from './runtime-options.js';

export type TurnLimits = Pick<RuntimeOptions, 'turn_timeout_sec' | 'idle_timeout_sec' | 'tool_timeout_sec'>;

const MORE = 4;
const CODES = {
  turn_timeout_sec: 'TURN_TIMEOUT',
  idle_timeout_sec: 'ENGINE_IDLE_TIMEOUT',
  tool_timeout_sec: 'TOOL_CALL_TIMEOUT',
} as const satisfies Record<keyof TurnLimits, string>;

export function limitReached(name: keyof TurnLimits, limits: TurnLimits | undefined): RunError {
  const seconds = limits?.[name] ?? null;
  const code = CODES[name];
  return seconds === null
    ? runError(`${code}.unknown_limit`)
    : runError(`${code}.limit`, { time: phraseOfSeconds(seconds), more: seconds * MORE });
}

export function describeSeconds(seconds: number): string {
  return textOf(phraseOfSeconds(seconds));
}

function phraseOfSeconds(seconds: number): Phrase {
  if (seconds % 3600 === 0)
    return seconds === 3600 ? phrase('one_hour') : phrase('hours_count', { count: seconds / 3600 });
  if (seconds % 60 === 0)
    return seconds === 60 ? phrase('one_minute') : phrase('minutes_count', { count: seconds / 60 });
  return seconds === 1 ? phrase('one_second') : phrase('seconds_count', { count: seconds });
}
