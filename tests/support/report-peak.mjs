// Preloaded into a child: when it ends, reports its peak memory in bytes and its CPU time in milliseconds on file
// descriptor 3, one per line.
import { writeSync } from 'node:fs';

process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  writeSync(3, `${maxRSS * 1024}\n${Math.round((userCPUTime + systemCPUTime) / 1000)}\n`);
});
