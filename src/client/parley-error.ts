// An error response of a server with its code, or the failure to reach the server.
import type { JsonObject } from '../kernel/json.js';
import type { Values } from '../kernel/fill-template.js';

export interface ParleyErrorOptions extends ErrorOptions {
  /** The HTTP status; 0, the default, without a complete response. */
  readonly status?: number;
  readonly hint?: string | undefined;
  readonly values?: Values | undefined;
  readonly details?: JsonObject | undefined;
}

/** The server refused a request, or could not be reached. */
export class ParleyError extends Error {
  /** The name of this class. */
  override readonly name = 'ParleyError';
  /** A code of contract/errors.json, or UNREACHABLE. */
  readonly code: string;
  /** The HTTP status; 0 without a complete response. */
  readonly status: number;
  /** What the caller can do; undefined if the message contains it. */
  readonly hint: string | undefined;
  /** The values in the message, by name, and in `problems` its phrases, for messages in other languages. */
  readonly values: Values;
  /** Further facts, depending on the code. */
  readonly details: JsonObject;

  /** Creates the error. */
  constructor(code: string, message: string, options: ParleyErrorOptions = {}) {
    super(message, options);
    this.code = code;
    this.status = options.status ?? 0;
    this.hint = options.hint;
    this.values = options.values ?? {};
    this.details = options.details ?? {};
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500;
  }
}
