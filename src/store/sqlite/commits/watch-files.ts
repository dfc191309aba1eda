// Notices that the files of an open database were deleted or replaced. SQLite would continue to write into files
// without a name, and all of that would be lost when the process exits; so a commit is acknowledged only if its files
// are still in place.
import { statSync, type BigIntStats } from 'node:fs';
import { refusal, type RequestError } from '../../../run/request-error.js';

// Throws if a file is not the one that was opened.
export type CheckFiles = () => void;

// The database must be open. The first commit creates the write-ahead log, which remains until the database is closed.
export function watchFiles(path: string): CheckFiles {
  const known = new Map<string, string>([[path, identify(path) ?? '']]);
  return () => {
    for (const each of [path, `${path}-wal`]) {
      const now = identify(each);
      const before = known.get(each);
      if (before === undefined && now !== null) known.set(each, now);
      else if (before !== undefined && now !== before) throw lost(each);
    }
  };
}

function identify(path: string): string | null {
  const stat: BigIntStats | undefined = statSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : `${stat.dev} ${stat.ino}`;
}

function lost(path: string): RequestError {
  return refusal('DATA_DIR_UNUSABLE.replaced', { path });
}
