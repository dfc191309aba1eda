// Streams the open questions of all runs. Each reader gets the current ones, then every change; a reader that is too
// far behind gets the current ones again.
import type { Clock } from '../../kernel/clock.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import { viewInteraction, type InteractionView } from '../../journal/run-view.js';
import type { InteractionRecord, Store } from '../../store/store.js';
import type { InteractionSummary, ShortenedPart } from '../../store/summary-reader.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';

const PAGE = 200;

export interface InboxItem extends InteractionView {
  readonly engine: string;
  readonly prompt: string;
  readonly labels: Readonly<Record<string, string>>;
  // The parts that are longer than shown.
  readonly truncated: readonly ShortenedPart[];
}

// Null: the run was deleted or cannot be read.
export async function toInboxItem(
  store: Store,
  interaction: InteractionSummary,
  now: number,
): Promise<InboxItem | null> {
  const run = await unlessDamaged(store.summaries.loadRun(interaction.run_id));
  if (!run) return null;
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

export class InboxFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  // By the id of the question.
  readonly #changes: RecentChanges;

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
        if (interaction) await this.#tell(stream, interaction);
      },
    });
  }

  async #tellAll(stream: EventStream): Promise<void> {
    await stream.write(namedFrame('reset', {}));
    for (let after: Pick<InteractionRecord, 'asked_at' | 'interaction_id'> | undefined; !stream.over;) {
      const page = await this.#store.summaries.listPending({ limit: PAGE, ...(after ? { after } : {}) });
      for (const interaction of page) await this.#tell(stream, interaction);
      after = page.at(-1);
      if (page.length < PAGE) break;
    }
    await stream.write(namedFrame('ready', {}));
  }

  async #tell(stream: EventStream, interaction: InteractionSummary): Promise<void> {
    const item = await toInboxItem(this.#store, interaction, this.#clock.now());
    if (item) await stream.write(namedFrame(item.state === 'pending' ? 'pending' : 'resolved', item));
  }

  close(): void {
    this.#changes.close();
  }
}
