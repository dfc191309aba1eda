// Aborts work that nobody waits for any more.
import type { FastifyReply } from 'fastify';

// Aborted when the connection of the response is closed.
export function leftSignal({ raw }: FastifyReply): AbortSignal {
  const left = new AbortController();
  raw.once('close', () => left.abort());
  if (raw.destroyed) left.abort();
  return left.signal;
}
