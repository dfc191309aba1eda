// The runs as they change: each that is new, or comes into another state, or asks something, as it is when it is told. What there is
// already is not told, for it may be much: a reader lists it when it is told to begin, and again when it is told to begin anew.
import type { Clock } from '../kernel/clock.js';
import { viewProfile, viewRun, type RunView } from '../orchestrator/run-view.js';
import type { RunRecord, Store } from '../store/store.js';
import { namedFrame, type EventStream } from './event-stream.js';
import { RecentChanges } from './recent-changes.js';

// With sessions.sticky off nothing of it is shown, also of a run that was created while it was on.
export async function toRunView(store: Store, run: RunRecord, { now, sticky }: { readonly now: number; readonly sticky: boolean }): Promise<RunView> {
  const pending = run.status === 'waiting_user' ? await store.loadPending(run.run_id) : null;
  const { interactive_profile: _profile, wait_deadline_at: _deadline, ...view } = viewRun(run, pending, now);
  return sticky ? { ...view, ...viewProfile(run, pending) } : view;
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
    this.#changes = new RecentChanges(store, ({ run_id: id, status, asked, resolved, deleted }) => (status !== undefined || asked !== undefined || resolved !== undefined || deleted ? [id] : []));
  }

  async feed(stream: EventStream): Promise<void> {
    await this.#changes.feed(stream, {
      all: () => stream.write(namedFrame('reset', {}) + namedFrame('ready', {})),
      change: async (id) => {
        const run = await this.#store.loadRun(id);
        await stream.write(run ? namedFrame('run', await toRunView(this.#store, run, { now: this.#clock.now(), sticky: this.#sticky })) : namedFrame('gone', { run_id: id }));
      },
    });
  }

  close(): void {
    this.#changes.close();
  }
}
