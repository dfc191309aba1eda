// Calls back once when a response is closed. Node emits nothing for a response that still waits behind others when its
// connection ends (requests sent without waiting for responses), so the connection is watched as well: bytes that are
// counted must be released.
import type { Socket } from 'node:net';
import type { FastifyReply } from 'fastify';

// One listener for each connection, however many responses wait on it.
const waiting = new WeakMap<Socket, Set<() => void>>();

export function onceClosed({ raw, request }: FastifyReply, callback: () => void): void {
  const { socket } = request.raw;
  if (raw.destroyed || socket.destroyed) return callback();
  const callbacks = waiting.get(socket) ?? watch(socket);
  const finish = (): void => {
    if (callbacks.delete(finish)) callback();
  };
  callbacks.add(finish);
  raw.once('close', finish);
}

function watch(socket: Socket): Set<() => void> {
  const callbacks = new Set<() => void>();
  waiting.set(socket, callbacks);
  socket.once('close', () => {
    for (const finish of callbacks) finish();
  });
  return callbacks;
}
