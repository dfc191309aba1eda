// Limits how much one token may have open at a time, so that one client cannot exhaust shared resources.
import type { Phrase } from '../../kernel/fill-template.js';
import type { FastifyInstance } from 'fastify';
import { actorKey } from '../../commands/actor-key.js';
import type { Clock } from '../../kernel/clock.js';
import { refusal } from '../../run/request-error.js';
import { callerOf } from './access.js';
import type { Caller } from './token-book.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    // Reads or sends a lot of data: counts against the caller's limit until the response is closed.
    isExpensive?: boolean;
  }
}

export class CallerLimit {
  readonly #limit: number;
  readonly #name: Phrase;
  readonly #open = new Map<string, number>();

  // `name` is the counted thing, in the plural.
  constructor(limit: number, name: Phrase) {
    this.#limit = limit;
    this.#name = name;
  }

  check(caller: Caller): void {
    const open = this.#open.get(callerKey(caller)) ?? 0;
    if (open < this.#limit) return;
    throw refusal('TOO_MANY_REQUESTS.open', { token: caller.actor.name, open, what: this.#name, limit: this.#limit });
  }

  // Returns the function that releases the place; calling it again changes nothing.
  enter(caller: Caller): () => void {
    this.check(caller);
    const key = callerKey(caller);
    this.#open.set(key, (this.#open.get(key) ?? 0) + 1);
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const left = (this.#open.get(key) ?? 1) - 1;
      if (left === 0) this.#open.delete(key);
      else this.#open.set(key, left);
    };
  }
}

// Limits how often each caller may do something within a period. All counts restart with the next period, so no more
// callers are remembered than there are valid tokens.
export class RateLimit {
  readonly #clock: Clock;
  readonly #limit: number;
  readonly #periodMs: number;
  readonly #counts = new Map<string, number>();
  #startedAt = 0;

  constructor(clock: Clock, { limit, periodMs }: { readonly limit: number; readonly periodMs: number }) {
    this.#clock = clock;
    this.#limit = limit;
    this.#periodMs = periodMs;
  }

  // Counts one. Returns null, or the number of seconds after which to try again.
  count(caller: Caller): number | null {
    const now = this.#clock.now();
    // The clock may have been set back.
    if (now - this.#startedAt >= this.#periodMs || now < this.#startedAt) {
      this.#counts.clear();
      this.#startedAt = now;
    }
    const count = this.#counts.get(caller.tokenHash) ?? 0;
    if (count >= this.#limit) return Math.max(1, Math.ceil((this.#startedAt + this.#periodMs - now) / 1000));
    this.#counts.set(caller.tokenHash, count + 1);
    return null;
  }
}

// Identifies a caller.
export function callerKey({ actor }: Caller): string {
  return actorKey(actor);
}

// Refuses an expensive request of a caller that has too many in progress.
export function limitExpensive(app: FastifyInstance, limit: CallerLimit): void {
  app.addHook('preHandler', async (request, reply) => {
    if (!request.routeOptions.config.isExpensive) return;
    const leave = limit.enter(callerOf(request));
    // A response that is already closed emits no further event.
    if (reply.raw.destroyed) leave();
    else reply.raw.once('close', leave);
  });
}
