// Disconnects clients that do not read: a connection with unsent data that makes no progress for the given time is
// destroyed. Any progress resets the time, so a slow client is served to the end.
import type { Server } from 'node:http';

export function setWriteDeadline(server: Server, ms: number): void {
  // Node restarts this timer whenever bytes are sent or received.
  server.setTimeout(ms);
  server.on('request', (_request, response) => {
    // Without a listener, Node would also destroy connections whose response is still being built.
    response.on('timeout', (socket) => {
      if (socket.writableLength > 0) socket.destroy();
    });
  });
}
