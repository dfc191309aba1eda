// Streams each run that is new, changes its state or asks a question, in its current form. Does not send the existing
// runs, which may be many: a reader lists them after each `ready`.
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
import { contractFor } from '../../run/waiting/run-contract.js';

export interface ShownFor {
  readonly now: number;
  // Whether runs show how they wait.
  readonly showsWaiting: boolean;
}

export async function toRunView(store: Store, run: RunRecord, { now, showsWaiting }: ShownFor): Promise<RunView> {
  const pending = run.status === 'waiting_user' ? await store.loadPendingInteraction(run.run_id) : null;
  return withProfile(viewRun(run, pending, now), showsWaiting ? viewProfile(run, pending) : null);
}

export async function toRunSummary(
  store: Store,
  run: RunSummary,
  { now, showsWaiting }: ShownFor,
): Promise<RunSummaryView> {
  const pending = run.status === 'waiting_user' ? await store.summaries.loadPendingInteraction(run.run_id) : null;
  return withProfile(viewRunSummary(run, pending, now), showsWaiting ? viewProfile(run, pending) : null);
}

export function toSalvagedView(salvaged: SalvagedRun, { now, showsWaiting }: ShownFor): RunView {
  const { run, pending } = salvaged;
  return withProfile(viewSalvaged(salvaged, now), showsWaiting ? viewProfile(run, pending) : null);
}

// Null removes the profile from the view: with the setting off, a run that was created while it was on has none either.
function withProfile<View extends RunView>(view: View, profile: ProfileView | null): View {
  const { interactive_profile: _profile, wait_deadline_at: _deadline, ...rest } = view;
  return { ...rest, ...profile } as View;
}

export class RunFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #changes: RecentChanges;

  readonly #showsWaiting: boolean;

  constructor(store: Store, clock: Clock, { showsWaiting } = contractFor()) {
    this.#showsWaiting = showsWaiting;
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
    return run && toRunSummary(this.#store, run, { now, showsWaiting: this.#showsWaiting });
  }

  async #salvage(id: string, now: number): Promise<RunSummaryView | null> {
    const salvaged = await this.#store.salvageRun(id);
    return salvaged && { ...toSalvagedView(salvaged, { now, showsWaiting: this.#showsWaiting }), truncated: [] };
  }

  close(): void {
    this.#changes.close();
  }
}
