// The options with which a caller controls how a run is executed. The schema refuses unknown names, so a typo is
// reported.
import * as z from 'zod';
import { show } from '../messages/explain-schema-errors.js';
import { formOf, formText } from '../messages/forms.js';
import { isObject, type Json, type JsonObject } from '../kernel/json.js';
import { nearestName } from '../kernel/nearest-name.js';
import { DEFAULT_OPTIONS, LONGEST_SEC } from './default-options.js';
import { refusal, type RequestError } from './request-error.js';

// Each rule completes the sentence "it takes …".
const SECONDS = formText('seconds', { limit: LONGEST_SEC });
const SECONDS_OR_NULL = formText('seconds_or_null', { limit: LONGEST_SEC });
const COUNT = formText('positive_integer');
const POLICIES = ['engine_judgement', 'use_default'] as const;
const seconds = (rule: string): z.ZodNumber => z.number(rule).positive(rule).max(LONGEST_SEC, rule);

export const runtimeOptions = z.strictObject({
  interactive_require_user_reply: z
    .boolean(formText('boolean'))
    .default(DEFAULT_OPTIONS.interactive_require_user_reply)
    .describe('true: only a person answers, however long it takes. false: Parley decides after session_timeout_sec.'),
  session_timeout_sec: seconds(SECONDS)
    .default(DEFAULT_OPTIONS.session_timeout_sec)
    .describe('How long a question waits before it is overdue.'),
  auto_decide_policy: z
    .enum(POLICIES, formText('choice', { choices: POLICIES.map((policy) => `"${policy}"`) }))
    .default(DEFAULT_OPTIONS.auto_decide_policy)
    .describe('How Parley decides an overdue question.'),
  max_attempt: z
    .int(COUNT)
    .min(1, COUNT)
    .default(DEFAULT_OPTIONS.max_attempt)
    .describe('A turn that would wait at this attempt fails instead.'),
  // The limits of a turn never end a run that waits.
  turn_timeout_sec: seconds(SECONDS_OR_NULL)
    .nullable()
    .default(DEFAULT_OPTIONS.turn_timeout_sec)
    .describe('The longest duration of a turn; null: no limit.'),
  idle_timeout_sec: seconds(SECONDS)
    .default(DEFAULT_OPTIONS.idle_timeout_sec)
    .describe('The longest time without output while no tool call is known to be running.'),
  tool_timeout_sec: seconds(SECONDS)
    .default(DEFAULT_OPTIONS.tool_timeout_sec)
    .describe('The longest time without output while a tool call is running.'),
  silence_notice_sec: seconds(SECONDS)
    .default(DEFAULT_OPTIONS.silence_notice_sec)
    .describe('A turn without output for this long is shown as silent and reported; it is not ended.'),
});

export type RuntimeOptions = Readonly<z.output<typeof runtimeOptions>>;

// The defaults that an operator may set. The values in force are recorded with the run.
export type TurnDefaults = Pick<
  RuntimeOptions,
  'turn_timeout_sec' | 'idle_timeout_sec' | 'tool_timeout_sec' | 'silence_notice_sec'
>;

export function parseRuntimeOptions(input: Json | undefined, defaults: Partial<TurnDefaults> = {}): RuntimeOptions {
  if (input === undefined) return { ...DEFAULT_OPTIONS, ...defaults };
  if (!isObject(input)) throw refusal('INVALID_ARGUMENT.options_form');
  const result = runtimeOptions.safeParse({ ...defaults, ...input });
  if (result.success) return result.data;
  throw explain(result.error.issues[0], input);
}

function explain(issue: z.core.$ZodIssue | undefined, input: JsonObject): RequestError {
  if (issue?.code === 'unrecognized_keys') return explainUnknown(issue.keys[0] ?? '');
  const name = String(issue?.path[0]);
  return refusal('INVALID_ARGUMENT.option_value', {
    name,
    value: show(input[name]),
    rule: formOf(issue?.message ?? ''),
  });
}

function explainUnknown(name: string): RequestError {
  const known = Object.keys(runtimeOptions.shape);
  const nearest = nearestName(name, known);
  const names = known.join(', ');
  return nearest === null
    ? refusal('INVALID_ARGUMENT.option_unknown', { name, names })
    : refusal('INVALID_ARGUMENT.option_misspelled', { name, nearest, names });
}

export function toJson(options: RuntimeOptions): JsonObject {
  return { ...options };
}
