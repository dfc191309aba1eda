// One side of a JSON-RPC conversation, one message per line. Independent of the program on the other side and of the
// transport. `open` → (end) → `ended`: every pending request has failed, and new ones are refused. Every received line
// reaches a handler, including lines that are not JSON-RPC.
import type { Json } from '../kernel/json.js';
import type { Timers } from '../kernel/timers.js';
import { JsonRpcError, PeerEndedError, RequestTimeoutError } from './errors.js';
import type { Message, RequestId } from './read-message.js';
import type { ReceivedLine } from './received-line.js';
import { RequestLedger } from './request-ledger.js';

export const DEFAULT_TIMEOUT_MS = 30_000;

export interface PeerHandlers {
  notified(method: string, params: Json | undefined, raw: string): void;
  // Respond with `respond` or `refuse`.
  asked(id: RequestId, method: string, params: Json | undefined, raw: string): void;
  unreadable(reason: string, raw: string): void;
}

export interface PeerOptions {
  // Sends one line, line end included; called in sending order. If it throws, the call that sends fails.
  readonly write: (line: string) => void;
  readonly handlers: PeerHandlers;
  readonly timers: Timers;
  readonly timeoutMs?: number;
}

/** A request of the other side that waits for a response. */
export interface AskedRequest {
  /** The id to respond to. */
  readonly id: RequestId;
  /** The requested method. */
  readonly method: string;
  /** The parameters of the method. */
  readonly params: Json | undefined;
  /** The line as it was received. */
  readonly raw: string;
}

interface Pending {
  readonly method: string;
  readonly resolve: (result: Json) => void;
  readonly reject: (error: Error) => void;
  readonly cancelTimeout: () => void;
}

export class JsonRpcPeer {
  // The requests of the other side.
  readonly ledger = new RequestLedger();
  readonly #write: (line: string) => void;
  readonly #handlers: PeerHandlers;
  readonly #timers: Timers;
  readonly #timeoutMs: number;
  // Our own requests.
  readonly #pending = new Map<RequestId, Pending>();
  #lastId = 0;
  #ended: PeerEndedError | null = null;

  constructor({ write, handlers, timers, timeoutMs = DEFAULT_TIMEOUT_MS }: PeerOptions) {
    this.#write = write;
    this.#handlers = handlers;
    this.#timers = timers;
    this.#timeoutMs = timeoutMs;
  }

  receive(line: ReceivedLine): void {
    if (this.#ended) return undefined;
    const { message, text } = line;
    switch (message.type) {
      case 'notification':
        return this.#handlers.notified(message.method, message.params, text);
      case 'request':
        this.ledger.add(message, line);
        return this.#handlers.asked(message.id, message.method, message.params, text);
      case 'response':
        return this.#receiveResponse(message, text);
      case 'unreadable':
        return this.#handlers.unreadable(text.trim() === '' ? 'an empty line' : message.reason, text);
      default:
        return message satisfies never;
    }
  }

  async request(method: string, params: object = {}, timeoutMs = this.#timeoutMs): Promise<Json> {
    if (this.#ended) throw this.#ended;
    const id = (this.#lastId += 1);
    const answered = new Promise<Json>((resolve, reject) => {
      const cancelTimeout = this.#timers.set(timeoutMs, () =>
        this.#removePending(id)?.reject(new RequestTimeoutError(method, timeoutMs)),
      );
      this.#pending.set(id, { method, resolve, reject, cancelTimeout });
    });
    try {
      this.#send({ id, method, params });
    } catch (error) {
      this.#removePending(id);
      throw error;
    }
    return answered;
  }

  notify(method: string, params?: object): void {
    if (this.#ended) throw this.#ended;
    this.#send({ method, ...(params === undefined ? {} : { params }) });
  }

  // The requests of the other side that wait for a response, the oldest first.
  get asked(): readonly AskedRequest[] {
    return this.ledger
      .list()
      .map(({ message: { id, method, params }, line }) => ({ id, method, params, raw: line.text }));
  }

  respond(id: RequestId, result: unknown): void {
    this.#answer(id, { result: result ?? null });
  }

  refuse(id: RequestId, code: number, message: string): void {
    this.#answer(id, { error: { code, message } });
  }

  // The other side no longer waits for a response.
  withdraw(id: RequestId): void {
    this.ledger.close(id, 'withdrawn');
  }

  // Fails all pending requests.
  end(reason: string): void {
    if (this.#ended) return;
    const ended = new PeerEndedError(reason);
    this.#ended = ended;
    this.ledger.end();
    for (const id of this.#pending.keys()) this.#removePending(id)?.reject(ended);
  }

  // The request stays open if the response cannot be sent.
  #answer(id: RequestId, outcome: object): void {
    if (this.#ended) throw this.#ended;
    if (!this.ledger.find(id)) throw new Error(`no request with the id ${JSON.stringify(id)} waits for an answer`);
    this.#send({ id, ...outcome });
    this.ledger.close(id, 'answered');
  }

  #send(message: object): void {
    this.#write(`${JSON.stringify(message)}\n`);
  }

  #receiveResponse({ id, outcome }: Extract<Message, { type: 'response' }>, raw: string): void {
    const pending = this.#removePending(id);
    if (!pending) return this.#handlers.unreadable('an answer to no request that waits', raw);
    if ('error' in outcome) pending.reject(new JsonRpcError(pending.method, outcome.error));
    else pending.resolve(outcome.result);
  }

  #removePending(id: RequestId): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.cancelTimeout();
    return pending;
  }
}
