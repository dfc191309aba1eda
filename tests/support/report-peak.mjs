// Preloaded into a child: when it ends, prints its peak memory and, after a space, its CPU time in ms on file
// descriptor 3.
import { writeSync } from 'node:fs';

process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeSync(3, `${maxRSS * 1024} ${Math.round((userCPUTime + systemCPUTime) / 1000)}`);
});
