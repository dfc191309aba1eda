// What a stand-in did, for tests: a JSON object a line in the file STAND_IN_LOG, on the disk before it goes on.
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
