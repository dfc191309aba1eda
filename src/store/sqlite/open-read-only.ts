// Opens the database to read, beside whoever writes it, also where nothing can be written. SQLite keeps an index of the
// write-ahead log in a file beside the database, which it cannot make on a read-only file system: without a log that
// index is not needed.
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { RequestError } from '../../run/request-error.js';
import { openDatabase, type Database } from './open-database.js';

export async function openReadOnly(path: string): Promise<Database> {
  const db = await openDatabase(path, { readOnly: true });
  try {
    // The first statement opens the log.
    db.exec('SELECT 1 FROM sqlite_master LIMIT 1');
    return db;
  } catch (error) {
    db.close();
    if (mayWriteIn(dirname(path))) throw error;
  }
  const logBytes = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0;
  if (logBytes > 0)
    throw new RequestError(
      'DATA_DIR_UNUSABLE',
      `${path} is on a read-only file system, and ${logBytes} bytes of it are still in parley.db-wal, which ` +
        'cannot be read there. Copy the data directory to a writable place and name the copy with --data.',
    );
  // Nobody can change it: neither locks nor the log are needed.
  return openDatabase(`${pathToFileURL(path).href}?immutable=1`, { readOnly: true });
}

function mayWriteIn(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
