// Loaded into a server that a test starts (--import): each sync takes SLOW_MS to twice that, seeded by SLOW_SEED, and a
// commit of the database takes place only after it. Records how far each log was durable in DURABLE, one JSON object
// per line: by removing everything else, a test simulates a power failure.
import fs from 'node:fs';
import fsPromises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { fileURLToPath } from 'node:url';

const { SLOW_MS: ms, SLOW_SEED: seed = '1', DURABLE: ledger } = process.env;

if (process.argv[2] === 'serve' && ms && ledger) {
  // The packed program has a store of its own, which would not be slowed down.
  if (process.argv[1] !== fileURLToPath(new URL('../../dist/main.js', import.meta.url)))
    throw new Error('a slow disk needs the unpacked program');
  let state = Number(seed) >>> 0;
  const delay = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Number(ms) * (1 + state / 2 ** 32);
  };
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, delay());
  const note = fs.openSync(ledger, 'a', 0o600);
  const { openSync, writeSync, fstatSync, fdatasync, fdatasyncSync } = fs;

  // The database itself cannot be slowed down from here, but its writer can: no change exists before its time.
  const { SqliteStore } = await import('../../dist/store/sqlite/sqlite-store.js');
  for (const name of ['createRun', 'append']) {
    const write = SqliteStore.prototype[name];
    SqliteStore.prototype[name] = function writeSlowly(change) {
      block();
      return write.call(this, change);
    };
  }

  const paths = new Map();
  fs.openSync = (path, ...rest) => {
    const file = openSync(path, ...rest);
    paths.set(file, String(path));
    return file;
  };
  const record = (path, bytes) => writeSync(note, `${JSON.stringify({ path, bytes })}\n`);
  fs.fdatasyncSync = (file) => {
    const { size } = fstatSync(file);
    block();
    fdatasyncSync(file);
    record(paths.get(file) ?? '', size);
  };
  // The write-ahead log of the database: SQLite acknowledges its other commits only after the delay above.
  fs.fdatasync = (file, done) => {
    setTimeout(() => fdatasync(file, done), delay());
  };

  const { open } = fsPromises;
  fsPromises.open = async (path, ...rest) => {
    const handle = await open(path, ...rest);
    const { datasync } = handle;
    handle.datasync = async () => {
      const { size } = await handle.stat();
      await new Promise((resolve) => setTimeout(resolve, delay()));
      await datasync.call(handle);
      record(String(path), size);
    };
    return handle;
  };
  syncBuiltinESMExports();
}
