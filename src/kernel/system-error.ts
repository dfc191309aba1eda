// Explains errors of files, disks and connections in plain words instead of error codes (ENOENT, EACCES).
const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'permission was denied',
  EADDRINUSE: 'the address is in use by another program',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ECONNREFUSED: 'no program listens there',
  ECONNRESET: 'the connection was closed',
  EDQUOT: 'the disk quota is used up',
  EEXIST: 'it exists already',
  EHOSTUNREACH: 'the host cannot be reached',
  EISDIR: 'it is a folder',
  ELOOP: 'too many links lead to each other',
  EMFILE: 'too many files are open',
  ENAMETOOLONG: 'its name is too long',
  ENETUNREACH: 'the network cannot be reached',
  ENFILE: 'too many files are open on this machine',
  ENODEV: 'there is no such device',
  ENOENT: 'it does not exist',
  ENOSPC: 'the disk is full',
  ENOTDIR: 'a part of its path is not a folder',
  ENOTEMPTY: 'the folder is not empty',
  ENOTFOUND: 'there is no host of that name',
  EPERM: 'it is not allowed',
  EPIPE: 'the other side was closed',
  EROFS: 'the disk can only be read',
  ETIMEDOUT: 'there was no answer in time',
};

// Returns the reason without the path. An unknown error keeps its own message.
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // fetch wraps the error of the connection. A connection that was tried on several addresses has several errors.
  const inner = error instanceof AggregateError ? (error.errors as unknown[])[0] : error.cause;
  const code = codeOf(error) ?? codeOf(inner);
  return (
    (code === undefined ? undefined : REASONS[code]) ??
    (error.message === 'fetch failed' && inner instanceof Error ? reasonOf(inner) : error.message)
  );
}

function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && Object.hasOwn(REASONS, code) ? code : undefined;
}
