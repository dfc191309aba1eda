// Preloaded into a child: when it ends, writes its peak memory to file descriptor 3.
import { writeSync } from 'node:fs';

process.on('exit', () => writeSync(3, String(process.resourceUsage().maxRSS * 1024)));
