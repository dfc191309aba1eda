// The ids of recent changes, in order, for any number of readers. Each reader has a position and waits there for the
// next change; a reader whose position was dropped starts again. Nothing else is kept for a slow reader.
import type { Committed, Store } from '../../store/store.js';
import type { EventStream } from './event-stream.js';

const KEPT_CHANGES = 2000;

interface Telling {
  // The position at which a reader starts, or starts again. Later changes follow after it.
  all(): Promise<void>;
  change(id: string): Promise<void>;
}

export class RecentChanges {
  readonly #ids: string[] = [];
  // The number of the first id that is still kept; it grows as old ones are dropped.
  #first = 0;
  readonly #waiting = new Set<() => void>();
  #closed = false;
  readonly #stopListening: readonly (() => void)[];

  // `idsOf` returns the ids that a commit changed.
  constructor(store: Store, idsOf: (commit: Committed) => readonly string[]) {
    this.#stopListening = [
      store.onCommitted((commit) => {
        for (const id of idsOf(commit)) this.#add(id);
      }),
      store.onMissed(() => this.#forget()),
    ];
  }

  #add(id: string): void {
    this.#ids.push(id);
    if (this.#ids.length > KEPT_CHANGES) this.#first += this.#ids.splice(0, KEPT_CHANGES / 2).length;
    this.#wakeAll();
  }

  // Changes may have been missed: every reader starts again.
  #forget(): void {
    this.#first += this.#ids.splice(0).length + 1;
    this.#wakeAll();
  }

  get #end(): number {
    return this.#first + this.#ids.length;
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  // Runs until the reader has disconnected or there are no further changes.
  async feed(stream: EventStream, tell: Telling): Promise<void> {
    stream.onClosed(() => this.#wakeAll());
    let place = -1;
    while (!stream.over && !this.#closed) {
      if (place < this.#first) {
        place = this.#end;
        await tell.all();
      } else if (place < this.#end) {
        await tell.change(this.#ids[place - this.#first] ?? '');
        place += 1;
      } else {
        await stream.idle(new Promise((resolve) => this.#waiting.add(resolve)));
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const stop of this.#stopListening) stop();
    this.#wakeAll();
  }
}
