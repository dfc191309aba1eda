// Opens the database for reading, while another process may write it, and also on a read-only file system. SQLite keeps
// an index of the write-ahead log in a file next to the database, which it cannot create there; without a log that
// index is not needed.
import { accessSync, constants, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { refusal } from '../../run/request-error.js';
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
  if (logBytes > 0) throw refusal('DATA_DIR_UNUSABLE.read_only', { path, bytes: logBytes });
  // Nobody can change the file, so neither locks nor the log are needed.
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
