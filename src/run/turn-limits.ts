// The limits of one turn in words: an error names the limit that was reached, its option, and how to allow more.
import type { RuntimeOptions } from './runtime-options.js';

export type TurnLimits = Pick<RuntimeOptions, 'turn_timeout_sec' | 'idle_timeout_sec' | 'tool_timeout_sec'>;

const MORE = 4;

export function explainLimit(name: keyof TurnLimits, limits: TurnLimits | undefined): string {
  const seconds = limits?.[name] ?? null;
  const time = seconds === null ? 'its limit' : describeSeconds(seconds);
  const more =
    seconds === null
      ? ''
      : ` Allow more: -o ${name}=${seconds * MORE}${name === 'turn_timeout_sec' ? ', or null for no limit' : ''}.`;
  switch (name) {
    case 'turn_timeout_sec':
      return `Stopped: the turn took longer than ${time} (${name}).${more}`;
    case 'idle_timeout_sec':
      return `Stopped after ${time} without output (${name}).${more}`;
    case 'tool_timeout_sec':
      return `Stopped: a tool call ran for ${time} without output (${name}).${more}`;
    default:
      return name satisfies never;
  }
}

export function describeSeconds(seconds: number): string {
  if (seconds % 3600 === 0) return plural(seconds / 3600, 'hour');
  return seconds % 60 === 0 ? plural(seconds / 60, 'minute') : plural(seconds, 'second');
}

function plural(count: number, unit: string): string {
  return `${count} ${unit}${count === 1 ? '' : 's'}`;
}
