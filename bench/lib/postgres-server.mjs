// The PostgreSQL server of a bench, with durable settings: that of PARLEY_BENCH_DATABASE_URL (an empty database), or a
// new one in a process of its own.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { childrenOf, cpuOf } from './cost.mjs';
import { sum } from './figures.mjs';

const SCRIPT = fileURLToPath(new URL('../../scripts/postgres-server.mjs', import.meta.url));

// `cpu`: microseconds of processor time of all its processes that live; null if they are not on this machine.
export async function openServer() {
  const configured = process.env.PARLEY_BENCH_DATABASE_URL;
  if (configured) return { url: configured, cpu: () => null, stop: async () => {} };
  const child = spawn(process.execPath, [SCRIPT], { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = once(child, 'exit');
  const failed = exit.then(() => Promise.reject(new Error('PostgreSQL could not be started')));
  const [url] = await Promise.race([once(createInterface(child.stdout), 'line'), failed]);
  // From here on, an exit is expected.
  failed.catch(() => {});
  return {
    url,
    cpu: () => sum((childrenOf(child.pid) ?? []).map((pid) => cpuOf(pid) ?? 0)),
    stop: async () => {
      child.stdin.end();
      await exit;
    },
  };
}
