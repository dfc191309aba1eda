// Why a call was refused: thrown once, with a code and a message of contract/errors.json.
import { REQUEST_HINTS, REQUEST_MESSAGES, type RequestErrorCode } from '../contract/error-codes.js';
import { fillTemplate, type Values } from '../kernel/fill-template.js';
import { toValues, type ValuesOf } from '../messages/message-template.js';

type Messages = typeof REQUEST_MESSAGES;
// "RUN_NOT_FOUND", or "RUN_NOT_FOUND.ambiguous" for a code with several messages.
export type RequestMessage = keyof Messages;

interface RequestErrorOptions {
  // The values in the message, by name, with the phrases from which they were made.
  readonly values?: Values | undefined;
  // What the caller can do about it.
  readonly hint?: string | undefined;
}

export class RequestError extends Error {
  override readonly name = 'RequestError';
  readonly code: RequestErrorCode;
  readonly values: Values;
  readonly hint: string | undefined;

  // The hint of the code, unless the message has its own.
  constructor(code: RequestErrorCode, message: string, { values = {}, hint }: RequestErrorOptions = {}) {
    super(message);
    this.code = code;
    this.values = values;
    this.hint = (hint ?? REQUEST_HINTS[code]) || undefined;
  }
}

export function refusal<M extends RequestMessage>(name: M, ...[values]: ValuesOf<Messages[M]>): RequestError {
  const [code] = name.split('.') as [RequestErrorCode];
  const texts = toValues(values ?? {});
  return new RequestError(code, fillTemplate(REQUEST_MESSAGES[name], texts), {
    values: texts,
    hint: REQUEST_HINTS[name],
  });
}
