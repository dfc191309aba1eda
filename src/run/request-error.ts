// Why a call was refused: thrown once, with a code of contract/errors.json.
import type { RequestErrorCode } from '../contract/error-codes.js';

export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: RequestErrorCode;

  constructor(code: RequestErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
