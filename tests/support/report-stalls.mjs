// Loaded into a server: writes a JSON line into the file PARLEY_STALLS each time its event loop was blocked for more
// than 50 ms, with the CPU time that the process used meanwhile: little CPU time means that the machine was busy with
// other work.
import { appendFileSync } from 'node:fs';

const STEP_MS = 5;
const STALL_MS = 50;

if (process.env.PARLEY_STALLS && process.argv.includes('serve')) {
  let last = performance.now();
  let before = process.cpuUsage();
  setInterval(() => {
    const now = performance.now();
    const ms = now - last - STEP_MS;
    last = now;
    const { user, system } = process.cpuUsage(before);
    before = process.cpuUsage();
    if (ms > STALL_MS) {
      const cpu = Math.round((user + system) / 1000);
      const stall = { at: performance.timeOrigin + now, ms: Math.round(ms), cpu };
      appendFileSync(process.env.PARLEY_STALLS, `${JSON.stringify(stall)}\n`);
    }
  }, STEP_MS).unref();
}
