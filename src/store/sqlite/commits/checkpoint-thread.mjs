// The thread that moves the write-ahead log into the database file. Plain JavaScript: a thread starts from a file, in
// tests from this one.
import { parentPort, workerData } from 'node:worker_threads';

const port = parentPort;
if (!port) throw new Error('checkpoint-thread.mjs runs only as a worker thread');

const { path, driver } = /** @type {{ path: string, driver: string }} */ (workerData);
/** @type {typeof import('@photostructure/sqlite')} */
const { DatabaseSync } = await import(driver);
const db = new DatabaseSync(path, { timeout: 0 });
const move = db.prepare('PRAGMA wal_checkpoint(PASSIVE)');
const moveAndEmpty = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)');

port.on('message', (/** @type {'move' | 'empty' | 'close'} */ message) => {
  if (message === 'close') {
    db.close();
    port.close();
    return;
  }
  // Fails if the disk does; the log keeps everything, and the next checkpoint tries again.
  try {
    const statement = message === 'empty' ? moveAndEmpty : move;
    const { busy, log, checkpointed } = /** @type {{ busy: number, log: number, checkpointed: number }} */ (
      /** @type {unknown} */ (statement.get())
    );
    port.postMessage({ isDone: true, left: log - checkpointed, isEmpty: message === 'empty' && busy === 0 });
  } catch {
    port.postMessage({ isDone: false });
  }
});
