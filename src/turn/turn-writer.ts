// Writes the events of a running turn to the store in groups: events that arrive together are one transaction.
// When much is pending, the reader of the engine's output waits, so a slow store slows the engine down.
import { toTimestamp } from '../kernel/clock.js';
import { draft, type RaspDraft } from '../rasp/draft.js';
import type { Timers } from '../process/timers.js';
import type { CancelRequest, NewDelivery, RunRecord, Store } from '../store/store.js';
import type { Clock } from '../kernel/clock.js';
import type { ConversationFold } from '../fcmp/fold.js';
import { RunJournal } from '../journal/run-journal.js';
import { stateOf, withState } from '../journal/run-state.js';

// Events after a silence are stored at once. Then events are collected for this time: long enough to group related
// events, too short to be noticed.
const GATHER_MS = 10;
// While many events arrive, groups are larger: each group costs one write that the disk must confirm, whatever its
// size.
const BURST_EVENTS = 500;
const GATHER_BURST_MS = 40;
// When this much is pending, the engine waits. A larger group is not cheaper per event.
const MOST_BYTES = 1024 * 1024;

// Another writer has changed the run: the turn belongs to another owner, or the run has ended.
export class LostRunError extends Error {
  override readonly name = 'LostRunError';
}

export class TurnWriter {
  readonly journal: RunJournal;
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #timers: Timers;
  #run: RunRecord;
  // Set while events are being collected.
  #stopGathering: (() => void) | null = null;
  // One flush at a time, in order. After a failed one, every later one rejects with the same error.
  #last: Promise<void> = Promise.resolve();
  #failure: unknown;
  // Notifications to be stored with the next events.
  #deliveries: NewDelivery[] = [];
  readonly #onFailure: () => void;
  #isClosed = false;

  // `onFailure` is called when events could not be stored: the engine must be ended, because its output would be lost.
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
      { heads: run.heads, state: stateOf(run), fold },
      deps.clock,
    );
  }

  // The run as stored.
  get run(): RunRecord {
    return this.#run;
  }

  add(drafts: readonly RaspDraft[]): void | Promise<void> {
    this.journal.add(drafts);
    if (this.journal.pendingBytes >= MOST_BYTES) return this.#flushAndGather();
    // The next caller gets the error.
    if (this.journal.pending > 0 && this.#stopGathering === null) this.#flushAndGather().catch(() => {});
    return undefined;
  }

  // Records a cancel request, before the engine is ended: after a crash, recovery knows of it. Only the first request
  // of a run is recorded, and none after the turn was closed. A later caller waits until the first request is stored.
  async recordCancel({ at, actor }: CancelRequest): Promise<void> {
    if (this.#isClosed) return;
    const data = { requested_at: toTimestamp(at), ...(actor ? { actor } : {}) };
    if (!this.journal.state.cancel_requested) this.journal.add([draft('lifecycle.cancel.requested', data)]);
    await this.flush();
  }

  // Stores everything that was added. From now on only the end of the turn may be appended.
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.flush();
  }

  // Reports that nothing was printed since the last event, whose time it has, and stores the notifications with it.
  addSilence(silence: RaspDraft, deliveries: readonly NewDelivery[]): void {
    this.journal.addAtLastTime([silence]);
    this.#deliveries.push(...deliveries);
    this.flush().catch(() => {});
  }

  // Resolves when everything added so far is stored.
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
      // Does not retry events that could not be stored.
      if (this.journal.pending > 0 && this.#failure === undefined) this.#flushAndGather().catch(() => {});
    });
    return flushed;
  }

  async #commit(): Promise<void> {
    const drained = this.journal.drain();
    if (drained === null) return;
    const deliveries = this.#deliveries.splice(0);
    const run = this.#run;
    try {
      const outcome = await this.#store.append({
        run_id: run.run_id,
        expect: { epoch: run.epoch, rasp_seq: run.heads.rasp_seq },
        now: this.#clock.now(),
        ...drained,
        deliveries,
      });
      if (!outcome.committed)
        throw new LostRunError(`run ${run.run_id} was changed by another writer (${outcome.reason})`);
      this.#run = { ...withState(run, drained.after), heads: outcome.heads };
      this.journal.release(drained);
    } catch (error) {
      this.#failure = error;
      this.#onFailure();
      throw error;
    }
  }
}
