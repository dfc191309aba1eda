// What waits for a person, over all runs, as it changes. Each reader gets what waits now, then each change; one that fell too far
// behind gets what waits now again. Nothing is kept for a slow reader but its place.
import type { Clock } from '../kernel/clock.js';
import { viewInteraction, type InteractionView } from '../orchestrator/run-view.js';
import type { InteractionRecord, Store } from '../store/store.js';
import { namedFrame, type EventStream } from './event-stream.js';

const KEPT_CHANGES = 2000;
const PAGE = 200;

export interface InboxItem extends InteractionView {
  readonly engine: string;
  readonly prompt: string;
  readonly labels: Readonly<Record<string, string>>;
}

export async function toInboxItem(store: Store, interaction: InteractionRecord, now: number): Promise<InboxItem | null> {
  const run = await store.loadRun(interaction.run_id);
  return run && { ...viewInteraction(interaction, now), engine: run.spec.engine, prompt: run.spec.prompt, labels: run.spec.labels };
}

export class InboxFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #stopListening: () => void;
  // The latest changes, by the id of the question; the number of the first grows as old ones are forgotten.
  readonly #changes: string[] = [];
  #first = 0;
  readonly #waiting = new Set<() => void>();
  #closed = false;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#stopListening = store.onCommitted(({ asked, resolved }) => {
      for (const id of [resolved, asked]) if (id !== undefined) this.#add(id);
    });
  }

  #add(id: string): void {
    this.#changes.push(id);
    if (this.#changes.length > KEPT_CHANGES) this.#first += this.#changes.splice(0, KEPT_CHANGES / 2).length;
    this.#wakeAll();
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }

  get #end(): number {
    return this.#first + this.#changes.length;
  }

  async feed(stream: EventStream): Promise<void> {
    stream.onClosed(() => this.#wakeAll());
    let place = -1;
    while (!stream.over && !this.#closed) {
      if (place < this.#first) place = await this.#tellAll(stream);
      else if (place < this.#end) {
        await this.#tellChange(stream, this.#changes[place - this.#first] ?? '');
        place += 1;
      } else {
        await stream.idle(new Promise((resolve) => this.#waiting.add(resolve)));
      }
    }
  }

  // What changes while it is told is told once more after it.
  async #tellAll(stream: EventStream): Promise<number> {
    const place = this.#end;
    await stream.write(namedFrame('reset', {}));
    for (let after: InteractionRecord | undefined; !stream.over; ) {
      const page = await this.#store.listPending({ limit: PAGE, ...(after ? { after } : {}) });
      for (const interaction of page) await this.#tell(stream, interaction);
      after = page.at(-1);
      if (page.length < PAGE) break;
    }
    await stream.write(namedFrame('ready', {}));
    return place;
  }

  async #tellChange(stream: EventStream, id: string): Promise<void> {
    const interaction = await this.#store.loadInteraction(id);
    if (interaction) await this.#tell(stream, interaction);
  }

  async #tell(stream: EventStream, interaction: InteractionRecord): Promise<void> {
    const item = await toInboxItem(this.#store, interaction, this.#clock.now());
    if (item) await stream.write(namedFrame(item.state === 'pending' ? 'pending' : 'resolved', item));
  }

  close(): void {
    this.#closed = true;
    this.#stopListening();
    this.#wakeAll();
  }
}
