// Loaded into a server (--import): for each message of its parent, replies with the longest time in ms for which the
// event loop stood still since the last one.
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

const STEP_MS = 5;

// The threads of the server load this as well.
if (isMainThread && process.send) {
  const delays = monitorEventLoopDelay({ resolution: STEP_MS });
  delays.enable();
  process.on('message', () => {
    process.send({ stall: Math.max(0, delays.max / 1e6 - STEP_MS) });
    delays.reset();
  });
  // The server ends as usual, although its parent could still ask.
  process.channel.unref();
}
