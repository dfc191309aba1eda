// Tells those who wait for news of a run that there may be some. Only a hint: what is new is read from the store.
import { EventEmitter } from 'node:events';
import type { Store } from '../store/store.js';

export interface Wakeups {
  // Resolves at the next change of the run. Ask before looking at the store, so that nothing is missed in between.
  next(runId: string): Promise<void>;
}

export class CommitWakeups implements Wakeups {
  readonly #waiting = new EventEmitter().setMaxListeners(0);
  readonly #stopListening: () => void;

  constructor(store: Store) {
    this.#stopListening = store.onCommitted((runId) => this.#waiting.emit(runId));
  }

  next(runId: string): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.once(runId, resolve);
    });
  }

  // Whoever still waits looks once more.
  close(): void {
    this.#stopListening();
    for (const runId of this.#waiting.eventNames()) this.#waiting.emit(runId);
  }
}
