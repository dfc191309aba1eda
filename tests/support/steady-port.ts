// A free port for a server that restarts on it, outside the ephemeral range, so that no other process takes it
// meanwhile.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below what systems give away by themselves (32768 and up on Linux, 49152 on others), above what services are known
// by.
const [LOWEST, HIGHEST] = [12_000, 32_000];

// Not by the seed: two that play the same one side by side must not meet.
export async function steadyPort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST);
    const server = createServer();
    try {
      server.listen(port, '127.0.0.1');
      await once(server, 'listening');
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    } finally {
      server.close();
    }
  }
}
