// The runs as they change: each that is new, or comes into another state, or asks something, as it is when it is told. What there is
// already is not told, for it may be much: a reader lists it when it is told to begin, and again when it is told to begin anew.
import type { Clock } from '../kernel/clock.js';
import { unlessDamaged } from '../kernel/stored-json.js';
import { viewRun, viewRunSummary, viewSalvaged, type RunSummaryView, type RunView } from '../orchestrator/run-view.js';
import type { RunRecord, Store } from '../store/store.js';
import type { RunSummary } from '../store/summary-reader.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';

export async function toRunView(store: Store, run: RunRecord, now: number): Promise<RunView> {
  return viewRun(run, run.status === 'waiting_user' ? await store.loadPending(run.run_id) : null, now);
}

export async function toRunSummary(store: Store, run: RunSummary, now: number): Promise<RunSummaryView> {
  return viewRunSummary(run, run.status === 'waiting_user' ? await store.summaries.loadPending(run.run_id) : null, now);
}

export class RunFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #changes: RecentChanges;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
    this.#changes = new RecentChanges(store, ({ run_id: id, status, asked, resolved, deleted }) => (status !== undefined || asked !== undefined || resolved !== undefined || deleted ? [id] : []));
  }

  async feed(stream: EventStream): Promise<void> {
    await this.#changes.feed(stream, {
      all: () => stream.write(namedFrame('reset', {}) + namedFrame('ready', {})),
      change: async (id) => {
        const now = this.#clock.now();
        let isDamaged = false;
        const whole = await unlessDamaged(this.#view(id, now), () => (isDamaged = true));
        const view = isDamaged ? await this.#salvage(id, now) : whole;
        await stream.write(view ? namedFrame('run', view) : namedFrame('gone', { run_id: id }));
      },
    });
  }

  async #view(id: string, now: number): Promise<RunSummaryView | null> {
    const run = await this.#store.summaries.loadRun(id);
    return run && toRunSummary(this.#store, run, now);
  }

  async #salvage(id: string, now: number): Promise<RunSummaryView | null> {
    const salvaged = await this.#store.salvageRun(id);
    return salvaged && { ...viewSalvaged(salvaged, now), truncated: [] };
  }

  close(): void {
    this.#changes.close();
  }
}
