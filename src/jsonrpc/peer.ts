// One side of a JSON-RPC conversation, a message a line. Knows neither who is on the other side nor how the bytes
// travel. `open` → (end) → `ended`: then every request that waits has failed, and no other is taken. Whatever comes is
// given to somebody, what cannot be understood too.
import type { Json } from '../kernel/json.js';
import type { Timers } from '../kernel/timers.js';
import { JsonRpcError, PeerEndedError, RequestTimeoutError } from './errors.js';
import { LineSplitter } from './line-splitter.js';
import { readMessage, type Message, type RequestId } from './read-message.js';

export const DEFAULT_TIMEOUT_MS = 30_000;

export interface PeerHandlers {
  notified(method: string, params: Json | undefined, raw: string): void;
  // To be answered with `respond` or `refuse`.
  asked(id: RequestId, method: string, params: Json | undefined, raw: string): void;
  unreadable(reason: string, raw: string): void;
}

export interface PeerOptions {
  // Called with one line at a time, its end included, in the order in which they are to be sent. What it throws fails
  // the call.
  readonly write: (line: string) => void;
  readonly handlers: PeerHandlers;
  readonly timers: Timers;
  readonly timeoutMs?: number;
}

export interface AskedRequest {
  readonly id: RequestId;
  readonly method: string;
  readonly params: Json | undefined;
  readonly raw: string;
}

interface Pending {
  readonly method: string;
  readonly resolve: (result: Json) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimeout: () => void;
}

export class JsonRpcPeer {
  readonly #write: (line: string) => void;
  readonly #handlers: PeerHandlers;
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  readonly #splitter = new LineSplitter((line) => this.#take(line.toString('utf8')));
  readonly #pending = new Map<RequestId, Pending>();
  // What the other side has asked and nobody has answered.
  readonly #open = new Map<RequestId, AskedRequest>();
  #lastId = 0;
  #ended: PeerEndedError | null = null;

  constructor({ write, handlers, timers, timeoutMs = DEFAULT_TIMEOUT_MS }: PeerOptions) {
    this.#write = write;
    this.#handlers = handlers;
    this.#timers = timers;
    this.#timeoutMs = timeoutMs;
  }

  receive(chunk: Buffer): void {
    if (!this.#ended) this.#splitter.push(chunk);
  }

  async request(method: string, params: object = {}, timeoutMs = this.#timeoutMs): Promise<Json> {
    if (this.#ended) throw this.#ended;
    const id = (this.#lastId += 1);
    const answered = new Promise<Json>((resolve, reject) => {
      const cancelTimeout = this.#timers.set(timeoutMs, () =>
        this.#settle(id)?.reject(new RequestTimeoutError(method, timeoutMs)),
      );
      this.#pending.set(id, { method, resolve, reject, cancelTimeout });
    });
    try {
      this.#send({ id, method, params });
    } catch (error) {
      this.#settle(id);
      throw error;
    }
    return answered;
  }

  notify(method: string, params?: object): void {
    if (this.#ended) throw this.#ended;
    this.#send({ method, ...(params === undefined ? {} : { params }) });
  }

  // What waits for an answer of ours, the oldest first.
  get asked(): readonly AskedRequest[] {
    return [...this.#open.values()];
  }

  respond(id: RequestId, result: unknown): void {
    this.#answer(id, { result: result ?? null });
  }

  refuse(id: RequestId, code: number, message: string): void {
    this.#answer(id, { error: { code, message } });
  }

  // The other side does not wait for an answer any more.
  withdraw(id: RequestId): void {
    this.#open.delete(id);
  }

  // The rest of an unfinished line is given out; then all that waits fails.
  end(reason: string): void {
    if (this.#ended) return;
    this.#splitter.end();
    const ended = new PeerEndedError(reason);
    this.#ended = ended;
    this.#open.clear();
    for (const id of this.#pending.keys()) this.#settle(id)?.reject(ended);
  }

  #answer(id: RequestId, outcome: object): void {
    if (this.#ended) throw this.#ended;
    if (!this.#open.has(id)) throw new Error(`no request with the id ${JSON.stringify(id)} waits for an answer`);
    this.#send({ id, ...outcome });
    this.#open.delete(id);
  }

  #send(message: object): void {
    this.#write(`${JSON.stringify(message)}\n`);
  }

  #take(raw: string): void {
    // Ended by what came before it in the same chunk.
    if (this.#ended) return;
    if (raw.trim() === '') return this.#handlers.unreadable('an empty line', raw);
    const message = readMessage(raw);
    switch (message.type) {
      case 'notification':
        return this.#handlers.notified(message.method, message.params, raw);
      case 'request':
        this.#open.set(message.id, { id: message.id, method: message.method, params: message.params, raw });
        return this.#handlers.asked(message.id, message.method, message.params, raw);
      case 'response':
        return this.#takeResponse(message, raw);
      case 'unreadable':
        return this.#handlers.unreadable(message.reason, raw);
      default:
        return message satisfies never;
    }
  }

  #takeResponse({ id, outcome }: Extract<Message, { type: 'response' }>, raw: string): void {
    const pending = this.#settle(id);
    if (!pending) return this.#handlers.unreadable('an answer to no request that waits', raw);
    if ('error' in outcome) pending.reject(new JsonRpcError(pending.method, outcome.error));
    else pending.resolve(outcome.result);
  }

  #settle(id: RequestId): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.cancelTimeout();
    return pending;
  }
}
