// Why a run failed: a code and a message of contract/errors.json (those of runs that need their process have
// a contract file of their own), stored with the run.
import { RUN_HINTS, RUN_MESSAGES, type RunErrorCode } from '../contract/error-codes.js';
import type { JsonObject } from '../kernel/json.js';
import { fillTemplate, type Values } from '../kernel/fill-template.js';
import { toValues, type ValuesOf } from '../messages/message-template.js';
import type { WaitErrorCode } from './waiting/wait-error-code.js';

type Messages = typeof RUN_MESSAGES;
// "DISK_FULL", or "ENGINE_EXITED.signal" for a code with several messages.
export type RunMessage = keyof Messages;

export interface RunError {
  readonly code: RunErrorCode | WaitErrorCode;
  readonly message: string;
  // The values in the message, by name. Errors that an earlier version stored have neither values nor a hint.
  readonly values?: Values;
  // What the caller can do about it, unless the message says so itself.
  readonly hint?: string;
  readonly details?: JsonObject;
}

export function runError<M extends RunMessage>(name: M, ...[values]: ValuesOf<Messages[M]>): RunError {
  const [code = ''] = name.split('.');
  const texts = toValues(values ?? {});
  const hint = RUN_HINTS[name] ?? RUN_HINTS[code];
  return {
    code: code as RunError['code'],
    message: fillTemplate(RUN_MESSAGES[name], texts),
    ...(values === undefined ? {} : { values: texts }),
    ...(hint ? { hint } : {}),
  };
}
