// Starts a server of Parley and measures when it listens, and when it has nothing more to do.
import { get } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { cpuOf } from './cost.mjs';
import { now } from './figures.mjs';
import { freePort, startParley } from './systems.mjs';

const POLL_MS = 5;
const LONGEST_MS = 10 * 60_000;
// A server that has used less than this much processor time for so long has nothing to do.
const QUIET_MS = 1500;
const QUIET_US = 30_000;
const SAMPLE_MS = 50;

// The server, with the time from its start until it responded for the first time (`listening`, in ms).
export async function startMeasured(folder, options) {
  const port = await freePort();
  const began = now();
  const starting = startParley(folder, { ...options, port, reportsStalls: true });
  // A server that does not start is reported here.
  const [listening, server] = await Promise.all([untilHealthy(port, began), starting]);
  return { ...server, began, listening };
}

async function untilHealthy(port, began) {
  while (now() - began < LONGEST_MS) {
    if (await isHealthy(port)) return now() - began;
    await pause(POLL_MS);
  }
  throw new Error(`the server did not listen within ${LONGEST_MS} ms`);
}

function isHealthy(port) {
  return new Promise((resolve) => {
    get(`http://127.0.0.1:${port}/healthz`, { agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on('error', () => resolve(false));
  });
}

// Resolves with the time from the start of the server until it had nothing more to do.
export async function untilQuiet({ pid, began }) {
  let busyAt = now();
  let cpu = cpuOf(pid);
  while (now() - busyAt < QUIET_MS) {
    if (now() - began > LONGEST_MS) throw new Error(`the server was busy for more than ${LONGEST_MS} ms`);
    await pause(SAMPLE_MS);
    const used = cpuOf(pid);
    if (used - cpu < QUIET_US) continue;
    cpu = used;
    busyAt = now();
  }
  return busyAt - began;
}
