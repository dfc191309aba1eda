// Large request bodies are read one at a time for each token. Parsing and checking one blocks the event loop for as long as it takes,
// and many that arrive together would be handled without a pause; a body that waits its turn is not even received.
import type { FastifyInstance } from 'fastify';
import { RequestError } from '../run/request-error.js';
import { callerKey } from './caller-limits.js';

const LARGE_BYTES = 1024 * 1024;
const MOST_WAITING = 64;

export function readLargeBodiesInTurn(app: FastifyInstance): void {
  const queues = new Map<string, { last: Promise<void>; waiting: number }>();
  app.addHook('preParsing', async ({ headers, caller }, reply, payload) => {
    // A body without a length may be as large as it likes.
    const bytes = headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : Infinity;
    if (bytes <= LARGE_BYTES || caller === null) return payload;
    const key = callerKey(caller);
    const queue = queues.get(key) ?? { last: Promise.resolve(), waiting: 0 };
    if (queue.waiting >= MOST_WAITING) throw new RequestError('TOO_MANY_REQUESTS', `${queue.waiting} requests of this token with more than ${LARGE_BYTES} bytes wait to be read. Send them one after the other.`);
    queues.set(key, queue);
    const before = queue.last;
    queue.waiting += 1;
    queue.last = new Promise<void>((resolve) => {
      const leave = (): void => {
        queue.waiting -= 1;
        if (queue.waiting === 0) queues.delete(key);
        // After the others that have something to do.
        setImmediate(resolve);
      };
      if (reply.raw.destroyed) leave();
      else reply.raw.once('close', leave);
    });
    await before;
    return payload;
  });
}
