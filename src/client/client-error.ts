// The errors that the client itself creates, with a message of contract/errors.json.
import type { NameIn } from '../kernel/fill-template.js';
import { CLIENT_MESSAGES } from './client-messages.js';
import { ParleyError, type ParleyErrorOptions } from './parley-error.js';

type Messages = typeof CLIENT_MESSAGES;

export function clientError<M extends keyof Messages>(
  name: M,
  values: Readonly<Record<NameIn<Messages[M]>, string | number>>,
  options: Pick<ParleyErrorOptions, 'status' | 'cause'> = {},
): ParleyError {
  const [code = ''] = name.split('.');
  const byName: Readonly<Record<string, string | number>> = values;
  const message = CLIENT_MESSAGES[name].replaceAll(/\{([a-z_]+)\}/g, (_, value: string) => String(byName[value]));
  return new ParleyError(code, message, { ...options, values });
}
