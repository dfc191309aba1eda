// Large request bodies are read one at a time per token. Parsing and checking one blocks the event loop, and many that
// arrive together would be handled without a pause; a body that waits for its turn is not even received. From an
// unauthenticated caller no large body is read at all.
import type { FastifyInstance } from 'fastify';
import { refusal } from '../../run/request-error.js';
import { callerKey } from '../access/caller-limits.js';

const LARGE_BYTES = 1024 * 1024;
const MOST_WAITING = 64;
// A sign-in needs less than 1200 bytes.
const UNKNOWN_CALLER_BYTES = 4096;
// Long enough for the refusal to reach a client that is still sending: closed at once, the connection would be reset.
const LINGER_MS = 1000;

// Limits the body on every route that needs no token, and closes the connection of an unknown caller whose body has not
// arrived when the response has been sent. Until then Node discards what arrives.
export function refuseBodiesOfUnknownCallers(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.config?.role === 'anyone') route.bodyLimit = UNKNOWN_CALLER_BYTES;
  });
  app.addHook('onResponse', async ({ raw, caller }) => {
    if (caller !== null || raw.complete) return;
    setTimeout(() => {
      if (!raw.complete) raw.socket.destroy();
    }, LINGER_MS).unref();
  });
}

export function readLargeBodiesInTurn(app: FastifyInstance): void {
  const queues = new Map<string, { last: Promise<void>; waiting: number }>();
  app.addHook('preParsing', async ({ headers, caller }, reply, payload) => {
    // A body without a length may be arbitrarily large.
    const bytes = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
    if (bytes <= LARGE_BYTES || caller === null) return payload;
    const key = callerKey(caller);
    const queue = queues.get(key) ?? { last: Promise.resolve(), waiting: 0 };
    if (queue.waiting >= MOST_WAITING)
      throw refusal('TOO_MANY_REQUESTS.large_bodies', { count: queue.waiting, bytes: LARGE_BYTES });
    queues.set(key, queue);
    const before = queue.last;
    queue.waiting += 1;
    queue.last = new Promise<void>((resolve) => {
      const leave = (): void => {
        queue.waiting -= 1;
        if (queue.waiting === 0) queues.delete(key);
        // Runs after other pending work of the event loop.
        setImmediate(resolve);
      };
      if (reply.raw.destroyed) leave();
      else reply.raw.once('close', leave);
    });
    await before;
    return payload;
  });
}
