// The ledger of the requests that the other side sent: the only place that knows which of them wait for a response. The
// state of a request is in its message (`open` → `answered` | `withdrawn`), so every holder of the message sees it. The
// ledger finds open requests by id and wakes callers that wait for a withdrawal.
import type { RequestId, RequestMessage } from './read-message.js';
import type { ReceivedLine } from './received-line.js';

export interface OpenRequest {
  readonly message: RequestMessage;
  readonly line: ReceivedLine;
}

export class RequestLedger {
  // By id, the oldest first. An id that the other side uses again replaces the earlier request.
  readonly #open = new Map<RequestId, OpenRequest>();
  readonly #watchers = new Map<RequestMessage, Set<() => void>>();

  add(message: RequestMessage, line: ReceivedLine): void {
    this.#open.set(message.id, { message, line });
  }

  find(id: RequestId): OpenRequest | undefined {
    return this.#open.get(id);
  }

  // Whether exactly this request waits for a response, not another one with the same id.
  has(message: RequestMessage): boolean {
    return this.#open.get(message.id)?.message === message;
  }

  // A line that was read from the log again has a message of its own. Returns the received line instead if its request
  // is open.
  recall(line: ReceivedLine): ReceivedLine {
    if (line.message.type !== 'request') return line;
    const open = this.#open.get(line.message.id);
    return open?.line.from === line.from ? open.line : line;
  }

  list(): readonly OpenRequest[] {
    return [...this.#open.values()];
  }

  close(id: RequestId, state: 'answered' | 'withdrawn'): void {
    const message = this.#open.get(id)?.message;
    if (!message) return;
    message.state = state;
    this.#open.delete(id);
    for (const wake of this.#watchers.get(message) ?? []) wake();
  }

  // Resolves when the request no longer waits for a response, or when the signal aborts. The end of the conversation
  // does not close a request: its message stays `open`.
  closed(message: RequestMessage, signal: AbortSignal): Promise<void> {
    if (!this.has(message) || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const watchers = this.#watchers.get(message) ?? new Set();
      const wake = (): void => {
        watchers.delete(wake);
        if (watchers.size === 0) this.#watchers.delete(message);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      watchers.add(wake);
      this.#watchers.set(message, watchers);
      signal.addEventListener('abort', wake);
    });
  }

  // The conversation ended: no request can be answered any more.
  end(): void {
    this.#open.clear();
  }
}
