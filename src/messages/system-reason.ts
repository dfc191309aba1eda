// Explains errors of files, disks and connections in plain words instead of error codes (ENOENT, EACCES).
import { PHRASES } from '../contract/phrases.js';
import type { Phrase } from '../kernel/fill-template.js';
import { verbatim, type Message } from '../kernel/message.js';
import { isPhrase, messageOf, textOf } from './phrase.js';

// Returns the reason without the path, as a phrase if Parley has one. An unknown error keeps its own message.
export function explainReason(error: unknown): Phrase | string {
  if (!(error instanceof Error)) return String(error);
  if ('phrase' in error && isPhrase(error.phrase)) return error.phrase;
  // fetch wraps the error of the connection. A connection that was tried on several addresses has several errors.
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : error.cause;
  const code = codeOf(error) ?? codeOf(inner);
  if (code !== undefined) return { rule: code };
  return error.message === 'fetch failed' && inner instanceof Error ? explainReason(inner) : error.message;
}

// The same as a value of a message.
export function reasonMessage(error: unknown): Message {
  const reason = explainReason(error);
  return typeof reason === 'string' ? verbatim(reason) : messageOf(reason);
}

export function reasonOf(error: unknown): string {
  return textOf(explainReason(error));
}

// The names of these phrases are the codes of the system.
function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && /^E[A-Z]+$/.test(code) && Object.hasOwn(PHRASES, code) ? code : undefined;
}
