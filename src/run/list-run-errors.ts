// The codes that runs fail with, for programs: what each means, and whether a retry may succeed.
import { RUN_ERRORS, STICKY_ERRORS, type ErrorMeaning } from '../contract/error-codes.js';

export interface ListedError extends ErrorMeaning {
  readonly code: string;
}

// `sticky`: with those of sessions.sticky.
export function listRunErrors(sticky: boolean): ListedError[] {
  const errors: Readonly<Record<string, ErrorMeaning>> = sticky ? { ...RUN_ERRORS, ...STICKY_ERRORS } : RUN_ERRORS;
  return Object.entries(errors).map(([code, { retryable, meaning }]) => ({ code, retryable, meaning }));
}
