// Notices that the files of an open database were deleted or replaced. SQLite goes on writing into files that have no
// name any more, and all of that would be lost with the process; so a commit is acknowledged only if its files are
// still at their place.
import { statSync, type BigIntStats } from 'node:fs';
import { RequestError } from '../../run/request-error.js';

// Throws if a file is not the one that was open before.
export type CheckFiles = () => void;

// The database must be open. The write-ahead log is made by the first commit and stays until the database is closed.
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
  return new RequestError(
    'DATA_DIR_UNUSABLE',
    `${path} was deleted or replaced while Parley was using it. Nothing more is accepted, because it would be ` +
      'lost. Put the original file back, or restart Parley to use what is there now.',
  );
}
