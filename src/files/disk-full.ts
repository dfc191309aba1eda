// Whether an error says that the disk, or the quota of the user, has no room left.
const CODES: ReadonlySet<unknown> = new Set(['ENOSPC', 'EDQUOT']);

export function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if ('code' in error && CODES.has(error.code)) return true;
  // SQLite's own words.
  return /database or disk is full/i.test(error.message) || isDiskFull(error.cause);
}
