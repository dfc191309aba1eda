// The open streams: bounded in total and per token, counted, and all ended when the server stops.
import { phrase } from '../../messages/phrase.js';
import type { FastifyReply } from 'fastify';
import type { Timers } from '../../process/timers.js';
import { refusal } from '../../run/request-error.js';
import { callerOf } from '../access/access.js';
import { CallerLimit } from '../access/caller-limits.js';
import { EventStream } from './event-stream.js';
import { OutputPace } from './output-pace.js';
import type { Caller } from '../access/token-book.js';

export class Streams {
  readonly #limit: number;
  readonly #timers: Timers;
  readonly #open = new Set<EventStream>();
  readonly #perToken: CallerLimit;
  readonly #pace: OutputPace;

  constructor(
    { limit, perToken }: { readonly limit: number; readonly perToken: number },
    timers: Timers,
    pace = new OutputPace(),
  ) {
    this.#limit = limit;
    this.#pace = pace;
    this.#perToken = new CallerLimit(perToken, phrase('streams'));
    this.#timers = timers;
  }

  get size(): number {
    return this.#open.size;
  }

  // Call it before the response starts, so that it can still be refused.
  checkRoom(caller: Caller): void {
    if (this.#open.size >= this.#limit) throw refusal('TOO_MANY_STREAMS', { open: this.#open.size });
    this.#perToken.check(caller);
  }

  // Turns the response into a stream until `feed` has finished; an error can only end it.
  async serve(reply: FastifyReply, feed: (stream: EventStream) => Promise<void>): Promise<void> {
    const leave = this.#perToken.enter(callerOf(reply.request));
    reply.hijack();
    const { mayGoOn } = reply.request;
    const stream = new EventStream(reply.raw, this.#timers, { mayGoOn, pace: this.#pace });
    this.#open.add(stream);
    try {
      await feed(stream);
    } catch (error) {
      reply.log.error({ err: error }, 'a stream failed');
    } finally {
      this.#open.delete(stream);
      leave();
      stream.end();
    }
  }

  close(): void {
    for (const stream of this.#open) stream.end();
  }
}
