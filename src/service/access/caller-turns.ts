// Lets each caller do a few things at a time; the rest waits its turn.
import { RequestError } from '../../run/request-error.js';

interface Queue {
  running: number;
  readonly waiting: (() => void)[];
}

export class CallerTurns {
  readonly #atOnce: number;
  readonly #mostWaiting: number;
  readonly #queues = new Map<string, Queue>();

  constructor({ atOnce, mostWaiting }: { readonly atOnce: number; readonly mostWaiting: number }) {
    this.#atOnce = atOnce;
    this.#mostWaiting = mostWaiting;
  }

  // Resolves when it is the caller's turn, to the function that ends it; calling that again changes nothing.
  async enter(key: string): Promise<() => void> {
    const queue = this.#queues.get(key) ?? { running: 0, waiting: [] };
    this.#queues.set(key, queue);
    if (queue.waiting.length >= this.#mostWaiting)
      throw new RequestError(
        'TOO_MANY_REQUESTS',
        `${queue.waiting.length} requests of this token wait for their turn, which is the limit. Try again later.`,
      );
    if (queue.running < this.#atOnce) queue.running += 1;
    // The place of the one that ends is handed over.
    else await new Promise<void>((resolve) => void queue.waiting.push(resolve));
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const next = queue.waiting.shift();
      // After the others that have something to do.
      if (next) return void setImmediate(next);
      queue.running -= 1;
      if (queue.running === 0) this.#queues.delete(key);
    };
  }
}
