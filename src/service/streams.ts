// The streams that are open: as many as allowed, counted, and all let go of at the end.
import type { FastifyReply } from 'fastify';
import type { Timers } from '../process/timers.js';
import { RequestError } from '../run/request-error.js';
import { EventStream } from './event-stream.js';

export class Streams {
  readonly #limit: number;
  readonly #timers: Timers;
  readonly #open = new Set<EventStream>();

  constructor(limit: number, timers: Timers) {
    this.#limit = limit;
    this.#timers = timers;
  }

  get size(): number {
    return this.#open.size;
  }

  // Before anything is answered, so that a refusal is still one.
  checkRoom(): void {
    if (this.#open.size >= this.#limit) throw new RequestError('TOO_MANY_STREAMS', `${this.#open.size} streams are open, and no more are served`);
  }

  // From here on the answer is a stream. It is fed until it is over; what fails then can only end it.
  async serve(reply: FastifyReply, feed: (stream: EventStream) => Promise<void>): Promise<void> {
    reply.hijack();
    const stream = new EventStream(reply.raw, this.#timers, reply.request.mayGoOn);
    this.#open.add(stream);
    try {
      await feed(stream);
    } catch (error) {
      reply.log.error({ err: error }, 'a stream failed');
    } finally {
      this.#open.delete(stream);
      stream.end();
    }
  }

  close(): void {
    for (const stream of this.#open) stream.end();
  }
}
