// Writes the events of a running turn to the store, in groups: what a moment brings is one transaction.
// A reader of the engine's output waits for it when much is pending, so a slow store slows the engine down.
import type { RaspDraft } from '../rasp/draft.js';
import type { Timers } from '../process/timers.js';
import type { NewDelivery, RunRecord, Store } from '../store/store.js';
import type { Clock } from '../kernel/clock.js';
import type { ConversationFold } from '../fcmp/fold.js';
import { RunJournal } from '../journal/run-journal.js';

// What comes after a silence is stored at once. Then it is gathered for so long: enough for what belongs together, too
// short to be noticed.
const GATHER_MS = 10;
// While much comes, groups are larger: each costs a write that the disk has to confirm, whatever is in it.
const BURST_EVENTS = 500;
const GATHER_BURST_MS = 40;
// So much waits at most; then the engine does. A group larger than this is not cheaper per event.
const MOST_EVENTS = 4000;
const MOST_BYTES = 1024 * 1024;

// The store has moved on without us: the turn belongs to somebody else, or the run has ended.
export class LostRunError extends Error {
  override readonly name = 'LostRunError';
}

export class TurnWriter {
  readonly journal: RunJournal;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #timers: Timers;
  #run: RunRecord;
  // Set while it gathers.
  #stopGathering: (() => void) | null = null;
  // One flush at a time, in order.
  #last: Promise<void> = Promise.resolve();
  #failure: unknown;
  // To be stored with the next events.
  #deliveries: NewDelivery[] = [];
  readonly #onFailure: () => void;

  // `onFailure` is called when something could not be stored: the engine must not work on unheard.
  constructor(
    deps: { store: Store; clock: Clock; timers: Timers },
    run: RunRecord,
    onFailure: () => void,
    fold?: ConversationFold,
  ) {
    this.#onFailure = onFailure;
    this.#store = deps.store;
    this.#clock = deps.clock;
    this.#timers = deps.timers;
    this.#run = run;
    this.journal = new RunJournal(
      { runId: run.run_id, engine: run.spec.engine, attempt: run.attempt_number },
      run.heads,
      deps.clock,
      fold,
    );
  }

  // The run as it is stored.
  get run(): RunRecord {
    return this.#run;
  }

  add(drafts: readonly RaspDraft[]): void | Promise<void> {
    this.journal.add(drafts);
    if (this.journal.pending >= MOST_EVENTS || this.journal.pendingBytes >= MOST_BYTES) return this.#flushAndGather();
    // A failure is kept and told to whoever writes next.
    if (this.journal.pending > 0 && this.#stopGathering === null) this.#flushAndGather().catch(() => {});
    return undefined;
  }

  // Says that nothing was printed since the last event, whose time it has, and stores the notifications with it.
  addSilence(silence: RaspDraft, deliveries: readonly NewDelivery[]): void {
    this.journal.addAtLastTime([silence]);
    this.#deliveries.push(...deliveries);
    this.flush().catch(() => {});
  }

  // Everything added so far is stored when this resolves.
  flush(): Promise<void> {
    this.#stopGathering?.();
    this.#stopGathering = null;
    this.#last = this.#last.then(() => this.#commit());
    return this.#last;
  }

  #flushAndGather(): Promise<void> {
    const { pending } = this.journal;
    const flushed = this.flush();
    this.#stopGathering = this.#timers.set(pending >= BURST_EVENTS ? GATHER_BURST_MS : GATHER_MS, () => {
      this.#stopGathering = null;
      // What could not be stored is not tried again and again.
      if (this.journal.pending > 0 && this.#failure === undefined) this.#flushAndGather().catch(() => {});
    });
    return flushed;
  }

  async #commit(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure;
    const journal = this.journal.take();
    if (journal === null) return;
    const deliveries = this.#deliveries.splice(0);
    const run = this.#run;
    try {
      const outcome = await this.#store.commit({
        run_id: run.run_id,
        expect: { status: run.status, epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
        now: this.#clock.now(),
        journal,
        deliveries,
      });
      if (!outcome.committed)
        throw new LostRunError(`run ${run.run_id} was changed by somebody else (${outcome.reason})`);
      this.#run = { ...run, heads: outcome.heads };
    } catch (error) {
      this.#failure = error;
      this.#onFailure();
      throw error;
    }
  }
}
