// A free port for a server that restarts on it, outside the ephemeral range, so that no other process takes it
// meanwhile.
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

// Below the ports that systems assign by themselves (32768 and up on Linux, 49152 on others), and above those of known
// services.
const [LOWEST, HIGHEST] = [12_000, 32_000];

// Independent of the seed: two concurrent tests with the same seed must not choose the same port.
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
