// Streams the open questions of all runs. Each reader gets the current ones, then every change; a reader that is too
// far behind gets the current ones again.
import type { Clock } from '../../kernel/clock.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import { viewInteraction, type InteractionView } from '../../journal/run-view.js';
import type { InteractionRecord, Store } from '../../store/store.js';
import type { InteractionSummary, RunSummary, ShortenedPart } from '../../store/summary-reader.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';

// A page is read at once. Its frames are written in pieces of this size.
const PAGE = 100;
const WRITE_CHARS = 64 * 1024;

export interface InboxItem extends InteractionView {
  readonly engine: string;
  readonly prompt: string;
  readonly labels: Readonly<Record<string, string>>;
  // The parts that are longer than shown.
  readonly truncated: readonly ShortenedPart[];
}

// In the same order, with one read of their runs. Null: the run was deleted or cannot be read.
export async function toInboxItems(
  store: Store,
  interactions: readonly InteractionSummary[],
  now: number,
): Promise<(InboxItem | null)[]> {
  const runs = await store.summaries.loadRuns(interactions.map(({ run_id: id }) => id));
  return interactions.map((interaction) => {
    const run = runs.get(interaction.run_id);
    return run ? toInboxItem(interaction, run, now) : null;
  });
}

function toInboxItem(interaction: InteractionSummary, run: RunSummary, now: number): InboxItem {
  // The item shows neither the error nor the result of the run.
  const parts = run.truncated.filter((part) => part === 'prompt' || part === 'labels');
  return {
    ...viewInteraction(interaction, now),
    engine: run.spec.engine,
    prompt: run.spec.prompt,
    labels: run.spec.labels,
    truncated: [...interaction.truncated, ...parts],
  };
}

interface Page {
  readonly items: readonly (InboxItem | null)[];
  readonly last: InteractionSummary | undefined;
  readonly isFull: boolean;
}

export class InboxFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  // By the id of the question.
  readonly #changes: RecentChanges;
  #reading: Promise<void> = Promise.resolve();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#changes = new RecentChanges(store, ({ asked, resolved }) =>
      [resolved, asked].filter((id) => id !== undefined),
    );
  }

  async feed(stream: EventStream): Promise<void> {
    await this.#changes.feed(stream, {
      all: () => this.#tellAll(stream),
      change: async (id) => {
        const interaction = await unlessDamaged(this.#store.summaries.loadInteraction(id));
        if (interaction) await this.#send(stream, await this.#toItems([interaction]));
      },
    });
  }

  async #tellAll(stream: EventStream): Promise<void> {
    await stream.write(namedFrame('reset', {}));
    for (let after: Pick<InteractionRecord, 'asked_at' | 'interaction_id'> | undefined; !stream.over;) {
      const page = await this.#inTurn(() => this.#readPage(after));
      await this.#send(stream, page.items);
      after = page.last;
      if (!page.isFull) break;
    }
    await stream.write(namedFrame('ready', {}));
  }

  async #readPage(after: Pick<InteractionRecord, 'asked_at' | 'interaction_id'> | undefined): Promise<Page> {
    const interactions = await this.#store.summaries.listPending({ limit: PAGE, ...(after ? { after } : {}) });
    const items = await this.#toItems(interactions);
    return { items, last: interactions.at(-1), isFull: interactions.length === PAGE };
  }

  #toItems(interactions: readonly InteractionSummary[]): Promise<(InboxItem | null)[]> {
    return toInboxItems(this.#store, interactions, this.#clock.now());
  }

  async #send(stream: EventStream, items: readonly (InboxItem | null)[]): Promise<void> {
    let frames = '';
    for (const item of items) {
      if (item) frames += namedFrame(item.state === 'pending' ? 'pending' : 'resolved', item);
      if (frames.length < WRITE_CHARS) continue;
      await stream.write(frames);
      frames = '';
    }
    if (frames !== '') await stream.write(frames);
  }

  // One page at a time for all readers, who may all come at once after a restart.
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#reading.then(work);
    this.#reading = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  close(): void {
    this.#changes.close();
  }
}
