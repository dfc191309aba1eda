// The runs as they change: each that is new, or comes into another state, or asks something, as it is when it is told.
// What there is already is not told, for it may be much: a reader lists it when it is told to begin, and again when it
// is told to begin anew.
import type { Clock } from '../../kernel/clock.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import {
  viewProfile,
  viewRun,
  viewRunSummary,
  viewSalvaged,
  type ProfileView,
  type RunSummaryView,
  type RunView,
} from '../../journal/run-view.js';
import type { SalvagedRun } from '../../store/salvage.js';
import type { RunRecord, Store } from '../../store/store.js';
import type { RunSummary } from '../../store/summary-reader.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';

export interface ShownFor {
  readonly now: number;
  readonly sticky: boolean;
}

export async function toRunView(store: Store, run: RunRecord, { now, sticky }: ShownFor): Promise<RunView> {
  const pending = run.status === 'waiting_user' ? await store.loadPending(run.run_id) : null;
  return withProfile(viewRun(run, pending, now), viewProfile(run, pending), sticky);
}

export async function toRunSummary(store: Store, run: RunSummary, { now, sticky }: ShownFor): Promise<RunSummaryView> {
  const pending = run.status === 'waiting_user' ? await store.summaries.loadPending(run.run_id) : null;
  return withProfile(viewRunSummary(run, pending, now), viewProfile(run, pending), sticky);
}

export function toSalvagedView(salvaged: SalvagedRun, { now, sticky }: ShownFor): RunView {
  return withProfile(viewSalvaged(salvaged, now), viewProfile(salvaged.run, salvaged.pending), sticky);
}

// With sessions.sticky off nothing of it is shown, also of a run that was created while it was on.
function withProfile<View extends RunView>(view: View, profile: ProfileView, sticky: boolean): View {
  const { interactive_profile: _profile, wait_deadline_at: _deadline, ...rest } = view;
  return (sticky ? { ...rest, ...profile } : rest) as View;
}

export class RunFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #changes: RecentChanges;

  readonly #sticky: boolean;

  constructor(store: Store, clock: Clock, sticky = false) {
    this.#sticky = sticky;
    this.#store = store;
    this.#clock = clock;
    this.#changes = new RecentChanges(store, ({ run_id: id, status, asked, resolved, deleted }) =>
      status !== undefined || asked !== undefined || resolved !== undefined || deleted ? [id] : [],
    );
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
    return run && toRunSummary(this.#store, run, { now, sticky: this.#sticky });
  }

  async #salvage(id: string, now: number): Promise<RunSummaryView | null> {
    const salvaged = await this.#store.salvageRun(id);
    return salvaged && { ...toSalvagedView(salvaged, { now, sticky: this.#sticky }), truncated: [] };
  }

  close(): void {
    this.#changes.close();
  }
}
