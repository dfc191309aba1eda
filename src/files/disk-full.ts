// Whether an error means that the disk or the user's quota is full.
const CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && CODES.has(error.code)) return true;
  // The message of SQLite.
  return /database or disk is full/i.test(error.message) || isDiskFull(error.cause);
}
