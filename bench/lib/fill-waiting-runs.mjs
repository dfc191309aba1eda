// Fills a data directory with waiting runs, by a process that ends with SIGKILL (fill-waiting.mjs).
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const FILL = fileURLToPath(new URL('./fill-waiting.mjs', import.meta.url));

// Created through the store, because so many turns of an engine would take an hour. `script`: that of an earlier
// version.
export async function fillWaiting(folder, count, script = FILL) {
  const child = spawn(process.execPath, [script, folder, String(count)], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [, signal] = await once(child, 'exit');
  if (signal !== 'SIGKILL') throw new Error('the data directory was not filled');
}
