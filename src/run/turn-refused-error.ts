// Why a turn was not started, where a person can fix it: thrown once, becomes the error of the run.
import { runError, type RunError, type RunMessage } from './run-error.js';
import type { ValuesOf } from '../messages/message-template.js';
import type { RUN_MESSAGES } from '../contract/error-codes.js';

export class TurnRefusedError extends Error {
  override readonly name = 'TurnRefusedError';
  readonly error: RunError;

  constructor(error: RunError) {
    super(error.message);
    this.error = error;
  }
}

export function refuseTurn<M extends RunMessage>(
  name: M,
  ...values: ValuesOf<(typeof RUN_MESSAGES)[M]>
): TurnRefusedError {
  return new TurnRefusedError(runError(name, ...values));
}
