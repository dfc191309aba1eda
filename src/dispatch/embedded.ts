// Dispatch within one process: runs at most one turn per slot, starts the oldest queued run first, and sets one timer
// for the earliest deadline. It keeps no state of its own, so a crash of the process loses no work.
import type { Clock } from '../kernel/clock.js';
import { damageIn, unlessDamaged } from '../kernel/stored-json.js';
import { yieldToOthers } from '../process/yield-to-others.js';
import { Alarm, ClockAlarm, type Timers } from '../process/timers.js';
import type { Ownership } from '../ownership/ownership.js';
import type { InteractionRecord, Store } from '../store/store.js';
import type { Dispatch, DispatchHandlers } from './dispatch.js';

const RETRY_MS = 1000;
// A damaged run is tried again after this time, in case an operator repaired it.
const DAMAGED_MS = 3_600_000;
// A pass ends after so many questions that could not be decided: the store may be unavailable.
const MOST_REFUSED = 100;
// The store compares each question with those that rest, so there must not be many.
const MOST_RESTING = 1000;

export interface EmbeddedDeps {
  readonly store: Pick<Store, 'loadRun' | 'nextDecision'>;
  readonly ownership: Pick<Ownership, 'claim'>;
  readonly clock: Clock;
  readonly timers: Timers;
}

export interface EmbeddedOptions {
  // How many turns may run at the same time.
  readonly slots: number;
  // Whether this dispatch decides expired questions.
  readonly decides?: boolean;
}

export class EmbeddedDispatch implements Dispatch {
  readonly #deps: EmbeddedDeps;
  readonly #handlers: DispatchHandlers;
  #slots: number;
  readonly #turns = new Map<string, Promise<void>>();
  // Runs that could not be started, and questions that could not be decided, until the next try: each with the function
  // that cancels its timer.
  readonly #resting = new Map<string, () => void>();
  readonly #restingQuestions = new Map<string, () => void>();
  readonly #alarm: Alarm;
  readonly #deadline: ClockAlarm;
  readonly #decides: boolean;
  #isClosing = false;
  // The current pass over the store, and at most one more after it.
  #pass: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  constructor(deps: EmbeddedDeps, handlers: DispatchHandlers, { slots, decides = true }: EmbeddedOptions) {
    this.#decides = decides;
    this.#deps = deps;
    this.#alarm = new Alarm(deps.timers);
    this.#deadline = new ClockAlarm(deps.clock, deps.timers);
    this.#handlers = handlers;
    this.#slots = slots;
  }

  // At most one pass starts in an event-loop tick. Otherwise the timers of many resting questions, which expire
  // together, would start a pass each.
  wake(): void {
    this.#next ??= this.#pass
      .then(() => {
        this.#next = null;
        return this.#runPass();
      })
      .then(yieldToOthers);
    this.#pass = this.#next;
  }

  setSlots(slots: number): void {
    this.#slots = slots;
  }

  idle(): Promise<void> {
    return this.#pass;
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    this.#alarm.clear();
    this.#deadline.clear();
    for (const cancel of [...this.#resting.values(), ...this.#restingQuestions.values()]) cancel();
    await this.#pass;
    await Promise.all(this.#turns.values());
  }

  // A failed step does not prevent the other steps. After a failure another pass follows later.
  async #runPass(): Promise<void> {
    let hasFailed = false;
    for (const step of this.#decides
      ? [() => this.#decideDue(), () => this.#fillSlots(), () => this.#arm()]
      : [() => this.#fillSlots()]) {
      if (this.#isClosing) return;
      try {
        await step();
      } catch (error) {
        hasFailed = true;
        this.#handlers.onFailure(error);
      }
    }
    if (hasFailed && !this.#isClosing) this.#alarm.set(RETRY_MS, () => this.wake());
  }

  async #fillSlots(): Promise<void> {
    if (this.#turns.size >= this.#slots) return;
    // Runs that were just started may still be queued in the store, so they are excluded.
    for (const runId of await this.#deps.ownership.claim(this.#slots - this.#turns.size, [
      ...this.#turns.keys(),
      ...this.#resting.keys(),
    ])) {
      if (this.#turns.size >= this.#slots) return;
      const run = this.#turns.has(runId)
        ? null
        : await unlessDamaged(this.#deps.store.loadRun(runId), (damage) => this.#skipDamaged(runId, damage));
      if (this.#isClosing) return;
      if (run?.status !== 'queued' || this.#resting.has(runId)) continue;
      const turn = this.#handlers
        .startTurn(run)
        .catch(() => this.#rest(this.#resting, runId))
        .finally(() => {
          this.#turns.delete(runId);
          this.wake();
        });
      this.#turns.set(runId, turn);
    }
  }

  // A damaged run must not block the runs behind it in the queue.
  #skipDamaged(runId: string, damage: Error): void {
    this.#handlers.onFailure(damage);
    this.#rest(this.#resting, runId, DAMAGED_MS);
  }

  #rest(resting: Map<string, () => void>, id: string, ms = RETRY_MS): void {
    if (this.#isClosing) return;
    const cancel = this.#deps.timers.set(ms, () => {
      resting.delete(id);
      this.wake();
    });
    resting.set(id, cancel);
  }

  // Also decides questions that expired while Parley was not running. A question that cannot be decided must not delay
  // the questions behind it.
  async #decideDue(): Promise<void> {
    for (let refused = 0; refused < MOST_REFUSED && this.#restingQuestions.size < MOST_RESTING;) {
      const next = await this.#nextDecision();
      if (!next || this.#isClosing || next.due_at > this.#deps.clock.now()) return;
      if (await this.#decide(next)) continue;
      refused += 1;
      // A decision is a write, which lets other work run; a refusal may be only reads.
      await yieldToOthers();
    }
  }

  async #decide(question: InteractionRecord): Promise<boolean> {
    let ms = RETRY_MS;
    try {
      if (await this.#handlers.decide(question)) return true;
    } catch (error) {
      this.#handlers.onFailure(error);
      if (damageIn(error)) ms = DAMAGED_MS;
    }
    this.#rest(this.#restingQuestions, question.interaction_id, ms);
    return false;
  }

  #nextDecision(): Promise<InteractionRecord | null> {
    return this.#deps.store.nextDecision([...this.#restingQuestions.keys()]);
  }

  async #arm(): Promise<void> {
    this.#alarm.clear();
    this.#deadline.clear();
    const next = await this.#nextDecision();
    if (!next || this.#isClosing) return;
    // Too many questions were refused in this pass: the rest follows after a pause.
    if (next.due_at <= this.#deps.clock.now()) this.#alarm.set(RETRY_MS, () => this.wake());
    else this.#deadline.set(next.due_at, () => this.wake());
  }
}
