// Streams each run that is new, changes its state or asks a question, in its current form. Does not send the existing
// runs, which may be many: a reader lists them after each `ready`.
import type { Clock } from '../../kernel/clock.js';
import { unlessDamaged } from '../../kernel/stored-json.js';
import {
  viewProfile,
  viewRun,
  viewRunSummary,
  viewSalvaged,
  type RunSummaryView,
  type RunView,
} from '../../journal/run-view.js';
import type { SalvagedRun } from '../../store/salvage.js';
import type { InteractionRecord, RunRecord, Store } from '../../store/store.js';
import type { RunSummary } from '../../store/summary-reader.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';
import { contractFor, type RunContract } from '../../run/waiting/run-contract.js';

export interface ShownFor {
  readonly now: number;
  // Whether runs show how they wait.
  readonly showsWaiting: boolean;
  readonly isRecovering: IsRecovering;
}

// Whether the run was interrupted and has still to be ended.
export type IsRecovering = (runId: string) => boolean;

export async function toRunView(store: Store, run: RunRecord, shownFor: ShownFor): Promise<RunView> {
  const pending = run.status === 'waiting_user' ? await store.loadPendingInteraction(run.run_id) : null;
  return complete(viewRun(run, pending, shownFor.now), { run, pending, shownFor });
}

export async function toRunSummary(store: Store, run: RunSummary, shownFor: ShownFor): Promise<RunSummaryView> {
  const pending = run.status === 'waiting_user' ? await store.summaries.loadPendingInteraction(run.run_id) : null;
  return complete(viewRunSummary(run, pending, shownFor.now), { run, pending, shownFor });
}

export function toSalvagedView(salvaged: SalvagedRun, shownFor: ShownFor): RunView {
  const { run, pending } = salvaged;
  return complete(viewSalvaged(salvaged, shownFor.now), { run, pending, shownFor });
}

interface Viewed {
  readonly run: Pick<RunRecord, 'spec'>;
  readonly pending: Pick<InteractionRecord, 'due_at'> | null;
  readonly shownFor: ShownFor;
}

// Adds what the row does not have. With the setting off, runs that were created while it was on have no profile.
function complete<View extends RunView>(view: View, { run, pending, shownFor }: Viewed): View {
  const { interactive_profile: _profile, wait_deadline_at: _deadline, ...rest } = view;
  return {
    ...rest,
    ...(shownFor.isRecovering(view.run_id) ? { recovering: true } : {}),
    ...(shownFor.showsWaiting ? viewProfile(run, pending) : {}),
  } as View;
}

export interface RunFeedDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly isRecovering: IsRecovering;
}

export class RunFeed {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #changes: RecentChanges;

  readonly #showsWaiting: boolean;
  readonly #isRecovering: IsRecovering;

  constructor(
    { store, clock, isRecovering }: RunFeedDeps,
    { showsWaiting }: Pick<RunContract, 'showsWaiting'> = contractFor(),
  ) {
    this.#showsWaiting = showsWaiting;
    this.#isRecovering = isRecovering;
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
    return run && toRunSummary(this.#store, run, this.#shownAt(now));
  }

  async #salvage(id: string, now: number): Promise<RunSummaryView | null> {
    const salvaged = await this.#store.salvageRun(id);
    return salvaged && { ...toSalvagedView(salvaged, this.#shownAt(now)), truncated: [] };
  }

  #shownAt(now: number): ShownFor {
    return { now, showsWaiting: this.#showsWaiting, isRecovering: this.#isRecovering };
  }

  close(): void {
    this.#changes.close();
  }
}
