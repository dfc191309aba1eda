// Preloaded into the server of a soak: writes its heap size to file descriptor 3, once a second.
import { writeSync } from 'node:fs';

setInterval(() => {
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  writeSync(3, `${JSON.stringify({ heapUsed, external, arrayBuffers })}\n`);
}, 1000).unref();
