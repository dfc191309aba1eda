// Mistakes in arguments, which the argument parser (commander) words itself, as refusals with a message and values.
import type { Phrase } from '../kernel/fill-template.js';
import { phrase } from '../messages/phrase.js';
import { refusal, type RequestError } from '../run/request-error.js';

type Explain = (...values: string[]) => RequestError;

// The texts of commander 14; tests/cli/usage-error.test.ts makes each mistake.
const MISTAKES: readonly (readonly [RegExp, Explain])[] = [
  [
    /^unknown command '(.*?)'(?:\n\(Did you mean (?:one of )?([^,?]*).*\?\))?$/s,
    (name = '', nearest = '') =>
      nearest === ''
        ? refusal('INVALID_ARGUMENT.usage_command', { name })
        : refusal('INVALID_ARGUMENT.usage_command_near', { name, nearest }),
  ],
  [
    /^unknown option '(.*?)'(?:\n\(Did you mean (?:one of )?([^,?]*).*\?\))?$/s,
    (name = '', nearest = '') =>
      nearest === ''
        ? refusal('INVALID_ARGUMENT.usage_option', { name })
        : refusal('INVALID_ARGUMENT.usage_option_near', { name, nearest }),
  ],
  [/^missing required argument '(.*)'$/s, (name = '') => refusal('INVALID_ARGUMENT.usage_argument', { name })],
  [
    /^required option '(.*)' not specified$/s,
    (option = '') => refusal('INVALID_ARGUMENT.usage_option_required', { option }),
  ],
  [/^option '(.*)' argument missing$/s, (option = '') => refusal('INVALID_ARGUMENT.usage_option_value', { option })],
  [
    /^option '(.*)' cannot be used with option '(.*)'$/s,
    (option = '', other = '') => refusal('INVALID_ARGUMENT.usage_conflict', { option, other }),
  ],
  [
    /^too many arguments(?: for '(.*)')?\. Expected (\d+) arguments? but got (\d+)\.$/s,
    (command = '', expected = '', count = '') =>
      command === ''
        ? refusal('INVALID_ARGUMENT.usage_excess', { expected: countOf(expected), count })
        : refusal('INVALID_ARGUMENT.usage_excess_of', { command, expected: countOf(expected), count }),
  ],
  [
    /^(?:option|command-argument value) '(.*)' (?:argument '(.*)' is invalid|is invalid for argument '(.*)')\. (.*)$/s,
    (first = '', value = '', argument = '', rest = '') => {
      // An argument of a command is named after its value.
      const mistake = argument === '' ? { option: first, value } : { option: argument, value: first };
      const choices = /^Allowed choices are (.*)\.$/s.exec(rest)?.[1];
      return choices === undefined
        ? refusal('INVALID_ARGUMENT.usage_value', { ...mistake, rule: rest })
        : refusal('INVALID_ARGUMENT.usage_choice', { ...mistake, choices });
    },
  ],
];

// Null: not a text of the parser about a mistake.
export function explainUsage(text: string): RequestError | null {
  const mistake = text.replace(/^error: /, '').trimEnd();
  for (const [pattern, explain] of MISTAKES) {
    const match = pattern.exec(mistake);
    if (match) return explain(...match.slice(1).map((value: string | undefined) => value ?? ''));
  }
  return null;
}

function countOf(text: string): Phrase {
  const count = Number(text);
  if (count === 0) return phrase('no_arguments');
  return count === 1 ? phrase('one_argument') : phrase('arguments_count', { count });
}
