// Limits the response bytes that were written and not yet read by clients, per caller and in total. Without it, a few
// clients that request large runs and read nothing would exhaust the memory. Responses that are sent in pieces (files,
// archives, event streams) hold one piece each and are limited by their number.
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refusal, type RequestError } from '../../run/request-error.js';
import { callerKey } from '../access/caller-limits.js';
import { CallerTurns } from '../access/caller-turns.js';
import { onceClosed } from './once-closed.js';
import type { Caller } from '../access/token-book.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    // Responds with a complete run or question, which may be large: a few at a time per caller, so that the unread
    // bytes are known before the next one is loaded.
    isWhole?: boolean;
  }
}

export interface UnreadLimits {
  readonly perToken: number;
  readonly total: number;
}

// Three runs with the largest prompt fit into it.
export const UNREAD_LIMITS: UnreadLimits = { perToken: 32 * 1024 * 1024, total: 128 * 1024 * 1024 };
// A response up to this size is never refused because of other callers.
const SMALL_BYTES = 64 * 1024;
const WHOLE_READS = { atOnce: 2, mostWaiting: 1000 };

interface Unread {
  bytes: number;
  // A response did not fit. The next request is refused before its handler does the work.
  isFull: boolean;
}

export class UnreadBytes {
  readonly #limits: UnreadLimits;
  readonly #byCaller = new Map<string, Unread>();
  #total = 0;

  constructor(limits: UnreadLimits = UNREAD_LIMITS) {
    this.#limits = limits;
  }

  // Call it before the response is built.
  check(caller: Caller): void {
    const unread = this.#byCaller.get(callerKey(caller));
    if (unread && (unread.isFull || unread.bytes >= this.#limits.perToken)) throw tooMuchUnread(caller, unread.bytes);
  }

  // Whether a response of that size may be written. A caller without unread bytes may get one of any size.
  hasRoom(caller: Caller, bytes: number): boolean {
    const { perToken, total } = this.#limits;
    const unread = this.#byCaller.get(callerKey(caller));
    if (!unread) return this.#total === 0 || bytes <= SMALL_BYTES || this.#total + bytes <= total;
    return unread.bytes + bytes <= perToken && (bytes <= SMALL_BYTES || this.#total + bytes <= total);
  }

  refuse(caller: Caller): RequestError {
    const unread = this.#byCaller.get(callerKey(caller));
    if (unread) unread.isFull = true;
    return tooMuchUnread(caller, unread?.bytes ?? 0);
  }

  // Returns the function that releases the bytes; call it once.
  add(caller: Caller, bytes: number): () => void {
    const key = callerKey(caller);
    const unread = this.#byCaller.get(key) ?? { bytes: 0, isFull: false };
    this.#byCaller.set(key, unread);
    unread.bytes += bytes;
    this.#total += bytes;
    return () => {
      unread.bytes -= bytes;
      unread.isFull = false;
      this.#total -= bytes;
      if (unread.bytes === 0) this.#byCaller.delete(key);
    };
  }
}

function tooMuchUnread({ actor }: Caller, bytes: number): RequestError {
  return refusal('TOO_MANY_REQUESTS.unread', { bytes, token: actor.name });
}

export function limitUnreadBytes(app: FastifyInstance, unread: UnreadBytes): void {
  const turns = new CallerTurns(WHOLE_READS);
  const endTurn = new WeakMap<FastifyRequest, () => void>();
  app.addHook('preHandler', async (request, reply) => {
    const { caller } = request;
    if (!caller) return;
    unread.check(caller);
    if (!request.routeOptions.config.isWhole) return;
    const end = await turns.enter(callerKey(caller));
    endTurn.set(request, end);
    onceClosed(reply, end);
    // Earlier responses may have reached the limit.
    unread.check(caller);
  });
  app.addHook('onSend', async (request, reply, payload) => {
    const { caller, method } = request;
    const bytes =
      typeof payload === 'string' ? Buffer.byteLength(payload) : Buffer.isBuffer(payload) ? payload.length : 0;
    if (caller === null || bytes === 0) return payload;
    // The change is already stored, so its caller must get the response. A refusal is small.
    const isRefusable = (method === 'GET' || method === 'HEAD') && reply.statusCode < 400;
    const isRefused = isRefusable && !unread.hasRoom(caller, bytes);
    if (!isRefused) onceClosed(reply, unread.add(caller, bytes));
    const refused = isRefused ? unread.refuse(caller) : null;
    endTurn.get(request)?.();
    if (refused) throw refused;
    return payload;
  });
}
