// An error of a refused call, a failed run or a client in the language of a person, from its code and values. A message
// without a text in that language stays English.
import { REQUEST_HINTS, RUN_HINTS } from '../contract/error-codes.js';
import { isObject } from '../kernel/json.js';
import type { Values } from '../kernel/fill-template.js';
import { findMessage, translate } from './message-template.js';
import type { Catalogue } from './phrase.js';

export interface ExplainedError {
  readonly code: string;
  readonly message: string;
  readonly values?: Values | undefined;
  readonly hint?: string | undefined;
}

export interface ErrorLanguage {
  readonly catalogue: Catalogue;
  // By code or message.
  readonly hints: Readonly<Partial<Record<string, string>>>;
}

// Without a language, the message and the hint are English.
export function explainError(
  error: ExplainedError,
  language: ErrorLanguage | null,
): { readonly message: string; readonly hint: string | undefined } {
  const { code, message, hint } = error;
  if (language === null) return { message, hint };
  const values = isObject(error.values) ? (error.values as Values) : {};
  const name = findMessage({ code, message, values });
  return {
    message: (name === null ? null : translate(name, values, language.catalogue)) ?? message,
    hint: hint && translateHint(name ?? code, hint, language),
  };
}

function translateHint(name: string, hint: string, { hints }: ErrorLanguage): string {
  const [code = ''] = name.split('.');
  const key = [name, code].find((each) => REQUEST_HINTS[each] === hint || RUN_HINTS[each] === hint);
  return (key === undefined ? undefined : hints[key]) ?? hint;
}
