// Explains errors of files, disks and connections in plain words instead of error codes (ENOENT, EACCES).
import { createMessages, verbatim, type Message } from './message.js';

export const SYSTEM_REASONS = {
  'system.EACCES': 'permission was denied',
  'system.EADDRINUSE': 'the address is in use by another program',
  'system.EADDRNOTAVAIL': 'this machine does not have that address',
  'system.ECONNREFUSED': 'no program listens there',
  'system.ECONNRESET': 'the connection was closed',
  'system.EDQUOT': 'the disk quota is used up',
  'system.EEXIST': 'it exists already',
  'system.EHOSTUNREACH': 'the host cannot be reached',
  'system.EISDIR': 'it is a folder',
  'system.ELOOP': 'too many links lead to each other',
  'system.EMFILE': 'too many files are open',
  'system.ENAMETOOLONG': 'its name is too long',
  'system.ENETUNREACH': 'the network cannot be reached',
  'system.ENFILE': 'too many files are open on this machine',
  'system.ENODEV': 'there is no such device',
  'system.ENOENT': 'it does not exist',
  'system.ENOSPC': 'the disk is full',
  'system.ENOTDIR': 'a part of its path is not a folder',
  'system.ENOTEMPTY': 'the folder is not empty',
  'system.ENOTFOUND': 'there is no host of that name',
  'system.EPERM': 'it is not allowed',
  'system.EPIPE': 'the other side was closed',
  'system.EROFS': 'the disk can only be read',
  'system.ETIMEDOUT': 'there was no answer in time',
} as const;

const systemReason = createMessages(SYSTEM_REASONS);
type Key = keyof typeof SYSTEM_REASONS;

// Returns the reason without the path. An unknown error keeps its own message.
export function reasonOf(error: unknown): string {
  return explainReason(error).text;
}

export function explainReason(error: unknown): Message {
  if (!(error instanceof Error)) return verbatim(String(error));
  // fetch wraps the error of the connection. A connection that was tried on several addresses has several errors.
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : error.cause;
  const key = keyOf(error) ?? keyOf(inner);
  if (key !== undefined) return systemReason(key);
  return error.message === 'fetch failed' && inner instanceof Error ? explainReason(inner) : verbatim(error.message);
}

function keyOf(error: unknown): Key | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  const key = `system.${String(code)}`;
  return Object.hasOwn(SYSTEM_REASONS, key) ? (key as Key) : undefined;
}
