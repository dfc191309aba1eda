// Cuts off clients that do not read: a connection with unsent data that makes no progress for the given time is
// destroyed, whatever it was sent. Reading anything at all counts as progress, so a slow client is served to the end.
import type { Server } from 'node:http';

export function setWriteDeadline(server: Server, ms: number): void {
  // Node starts this timer anew whenever bytes come or go.
  server.setTimeout(ms);
  server.on('request', (_request, response) => {
    // Without a listener Node would also destroy connections whose response is still being made.
    response.on('timeout', (socket) => {
      if (socket.writableLength > 0) socket.destroy();
    });
  });
}
