// Wakes watchers of a run when it has changed. Only a hint: watchers read the changes from the store.
import type { Store } from '../store/store.js';

export interface Wakeups {
  watch(runId: string): RunWatch;
}

// To miss nothing: read the version, read the store, then wait for a later version.
export interface RunWatch {
  readonly version: number;
  // Resolves when the version has changed, or when the watch is closed.
  changed(since: number): Promise<void>;
  close(): void;
}

interface Topic {
  version: number;
  watchers: number;
  readonly unfollow: () => void;
  readonly waiting: Set<() => void>;
}

export class CommitWakeups implements Wakeups {
  readonly #store: Store;
  readonly #topics = new Map<string, Topic>();
  // Versions are never reused, so a watcher that comes later never mistakes an old version for a change.
  #latest = 0;
  readonly #stopListening: readonly (() => void)[];

  constructor(store: Store) {
    this.#store = store;
    this.#stopListening = [
      store.onCommitted(({ run_id: runId }) => this.#bump(runId)),
      store.onMissed(() => this.#bumpAll()),
    ];
  }

  watch(runId: string): RunWatch {
    const topic = this.#topics.get(runId) ?? this.#open(runId);
    topic.watchers += 1;
    const mine = new Set<() => void>();
    let closed = false;
    return {
      get version() {
        return topic.version;
      },
      changed: (since) =>
        new Promise((resolve) => {
          if (closed || topic.version !== since) return resolve();
          const wake = (): void => {
            topic.waiting.delete(wake);
            mine.delete(wake);
            resolve();
          };
          topic.waiting.add(wake);
          mine.add(wake);
        }),
      close: () => {
        if (closed) return;
        closed = true;
        for (const wake of mine) wake();
        topic.watchers -= 1;
        if (topic.watchers > 0) return;
        this.#topics.delete(runId);
        topic.unfollow();
      },
    };
  }

  #open(runId: string): Topic {
    const unfollow = this.#store.follow?.(runId) ?? (() => {});
    const topic = { version: (this.#latest += 1), watchers: 0, unfollow, waiting: new Set<() => void>() };
    this.#topics.set(runId, topic);
    return topic;
  }

  #bump(runId: string): void {
    const topic = this.#topics.get(runId);
    if (!topic) return;
    topic.version = this.#latest += 1;
    for (const wake of topic.waiting) wake();
  }

  // How many runs are watched.
  get watched(): number {
    return this.#topics.size;
  }

  // Wakes all watchers once more.
  close(): void {
    for (const stop of this.#stopListening) stop();
    this.#bumpAll();
  }

  #bumpAll(): void {
    for (const runId of this.#topics.keys()) this.#bump(runId);
  }
}
