// Lets each caller do a few things at a time; the rest waits in a queue.
import { refusal } from '../../run/request-error.js';

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

  // Resolves when it is the caller's turn, to the function that releases the place; calling it again changes nothing.
  async enter(key: string): Promise<() => void> {
    const queue = this.#queues.get(key) ?? { running: 0, waiting: [] };
    this.#queues.set(key, queue);
    if (queue.waiting.length >= this.#mostWaiting)
      throw refusal('TOO_MANY_REQUESTS.waiting', { count: queue.waiting.length });
    if (queue.running < this.#atOnce) queue.running += 1;
    // Hands the place over to the next waiting request.
    else await new Promise<void>((resolve) => void queue.waiting.push(resolve));
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      const next = queue.waiting.shift();
      // Runs after other pending work of the event loop.
      if (next) return void setImmediate(next);
      queue.running -= 1;
      if (queue.running === 0) this.#queues.delete(key);
    };
  }
}
