// What a caller may set about how a run is run. Unknown keys are refused, so that a slip is told.
import { isObject, type Json, type JsonObject } from '../kernel/json.js';
import { show } from '../kernel/explain-schema-errors.js';
import { nearestName } from '../kernel/nearest-name.js';
import { DEFAULT_MAX_ATTEMPT } from './attempt.js';
import { RequestError } from './request-error.js';

export interface RuntimeOptions {
  // true: nobody but a person answers, however long it takes.
  readonly interactive_require_user_reply: boolean;
  readonly session_timeout_sec: number;
  readonly auto_decide_policy: 'engine_judgement' | 'use_default';
  // A turn that would wait at this attempt fails instead.
  readonly max_attempt: number;
  // Limits of one turn; they never end a run that waits.
  readonly turn_timeout_sec: number | null;
  // Without output while no tool call is known to be running.
  readonly idle_timeout_sec: number;
  // Without output while a tool call is running.
  readonly tool_timeout_sec: number;
  // A turn without output for so long is shown as silent and reported; nothing is ended.
  readonly silence_notice_sec: number;
}

// What an operator may set for runs that do not say otherwise. The values in force are recorded with the run.
export type TurnDefaults = Pick<
  RuntimeOptions,
  'turn_timeout_sec' | 'idle_timeout_sec' | 'tool_timeout_sec' | 'silence_notice_sec'
>;

const DEFAULTS: RuntimeOptions = {
  interactive_require_user_reply: true,
  session_timeout_sec: 1200,
  auto_decide_policy: 'engine_judgement',
  max_attempt: DEFAULT_MAX_ATTEMPT,
  turn_timeout_sec: null,
  idle_timeout_sec: 1800,
  tool_timeout_sec: 14_400,
  silence_notice_sec: 1800,
};

// A hundred years: what is meant to be for ever must still be a time that can be stored.
const LONGEST_SEC = 3_153_600_000;

export function parseRuntimeOptions(given: Json | undefined, defaults: Partial<TurnDefaults> = {}): RuntimeOptions {
  if (given === undefined) return { ...DEFAULTS, ...defaults };
  if (!isObject(given)) throw new RequestError('INVALID_ARGUMENT', 'runtime_options takes an object');
  for (const [name, value] of Object.entries(given)) checkOption(name, value);
  return { ...DEFAULTS, ...defaults, ...(given as Partial<RuntimeOptions>) };
}

function checkOption(name: string, value: Json): void {
  if (!Object.hasOwn(DEFAULTS, name)) throw unknownOption(name);
  if (!fits(name as keyof RuntimeOptions, value)) throw unfitOption(name, value);
}

function unfitOption(name: string, value: Json): RequestError {
  return new RequestError(
    'INVALID_ARGUMENT',
    `runtime option ${name} cannot be ${show(value)}: it takes ${ruleOf(name)}`,
  );
}

function unknownOption(name: string): RequestError {
  const names = Object.keys(DEFAULTS);
  const near = nearestName(name, names);
  const hint = near === null ? '' : `did you mean "${near}"? `;
  const known = `${hint}the options are ${names.join(', ')}`;
  return new RequestError('INVALID_ARGUMENT', `there is no runtime option "${name}"; ${known}`);
}

function ruleOf(name: string): string {
  if (name === 'interactive_require_user_reply') return 'true or false';
  if (name === 'auto_decide_policy') return '"engine_judgement" or "use_default"';
  return name === 'max_attempt' ? 'a whole number of at least 1' : `seconds: a number above 0, at most ${LONGEST_SEC}`;
}

function fits(name: keyof RuntimeOptions, value: Json): boolean {
  switch (name) {
    case 'interactive_require_user_reply':
      return typeof value === 'boolean';
    case 'auto_decide_policy':
      return value === 'engine_judgement' || value === 'use_default';
    case 'max_attempt':
      return Number.isSafeInteger(value) && (value as number) >= 1;
    case 'turn_timeout_sec':
      return value === null || isSeconds(value);
    case 'session_timeout_sec':
    case 'idle_timeout_sec':
    case 'tool_timeout_sec':
    case 'silence_notice_sec':
      return isSeconds(value);
    default:
      return name satisfies never;
  }
}

function isSeconds(value: Json): boolean {
  return typeof value === 'number' && value > 0 && value <= LONGEST_SEC;
}

export function toJson(options: RuntimeOptions): JsonObject {
  return { ...options };
}
