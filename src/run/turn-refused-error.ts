// Why a turn was not begun, where a person can mend it: thrown once, becomes the error of the run.
import type { RunErrorCode } from '../contract/error-codes.js';

export class TurnRefusedError extends Error {
  override readonly name = 'TurnRefusedError';
  readonly code: RunErrorCode;

  constructor(code: RunErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
