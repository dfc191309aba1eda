// What a server refused, with its code; or that it could not be reached.
import type { JsonObject } from '../kernel/json.js';

export class ParleyError extends Error {
  override readonly name = 'ParleyError';
  // A code of contract/errors.json, or UNREACHABLE.
  readonly code: string;
  // 0 where there was no answer.
  readonly status: number;
  readonly details: JsonObject;

  constructor(code: string, message: string, status: number, details: JsonObject = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.status = status;
    this.details = details;
  }

  // The same request may be answered later.
  get passing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}
