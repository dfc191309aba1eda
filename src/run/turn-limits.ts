// The error of a turn that reached one of its limits: it names the limit, its option, and how to allow more.
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
    : runError(`${code}.limit`, { time: describeSeconds(seconds), more: seconds * MORE });
}

export function describeSeconds(seconds: number): string {
  if (seconds % 3600 === 0) return plural(seconds / 3600, 'hour');
  return seconds % 60 === 0 ? plural(seconds / 60, 'minute') : plural(seconds, 'second');
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
