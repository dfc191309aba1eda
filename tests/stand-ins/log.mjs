// Records the actions of a stand-in for tests: a JSON object per line in the file STAND_IN_LOG, on disk before it
// continues.
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs';

const LOGGED_ENV = ['PARLEY_TURN', 'CODEX_HOME', 'HOME', 'GEMINI_CLI_HOME', 'XDG_DATA_HOME'];

export function log(line) {
  const file = process.env.STAND_IN_LOG;
  if (!file) return;
  const env = Object.fromEntries(
    LOGGED_ENV.filter((name) => process.env[name] !== undefined).map((name) => [name, process.env[name]]),
  );
  const fd = openSync(file, 'a');
  writeSync(fd, `${JSON.stringify({ ...line, env })}\n`);
  fsyncSync(fd);
  closeSync(fd);
}
