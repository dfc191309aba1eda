// Dispatch within one process: runs at most one turn per slot, starts the oldest queued run first, and sets one timer
// for the earliest deadline. It keeps no state of its own, so a crash of the process loses no work.
import type { Clock } from '../kernel/clock.js';
import { unlessDamaged } from '../kernel/stored-json.js';
import { Alarm, ClockAlarm, type Timers } from '../process/timers.js';
import type { Ownership } from '../ownership/ownership.js';
import type { Store } from '../store/store.js';
import type { Dispatch, DispatchHandlers } from './dispatch.js';

const RETRY_MS = 1000;
// A damaged run is tried again after this time, in case an operator repaired it.
const DAMAGED_MS = 3_600_000;

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
  // Runs that could not be started and wait for the next try, each with the function that cancels its timer.
  readonly #resting = new Map<string, () => void>();
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

  wake(): void {
    this.#next ??= this.#pass.then(() => {
      this.#next = null;
      return this.#runPass();
    });
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
    for (const cancel of this.#resting.values()) cancel();
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
        .catch(() => this.#rest(runId))
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
    this.#rest(runId, DAMAGED_MS);
  }

  #rest(runId: string, ms = RETRY_MS): void {
    if (this.#isClosing) return;
    const cancel = this.#deps.timers.set(ms, () => {
      this.#resting.delete(runId);
      this.wake();
    });
    this.#resting.set(runId, cancel);
  }

  // Also decides questions that expired while Parley was not running.
  async #decideDue(): Promise<void> {
    for (
      let next = await this.#deps.store.nextDecision();
      next && !this.#isClosing && next.due_at <= this.#deps.clock.now();
      next = await this.#deps.store.nextDecision()
    ) {
      if (!(await this.#handlers.decide(next))) return;
    }
  }

  async #arm(): Promise<void> {
    this.#alarm.clear();
    this.#deadline.clear();
    const next = await this.#deps.store.nextDecision();
    if (!next || this.#isClosing) return;
    // A question that has expired and is still open was refused in this pass: try again after a pause.
    if (next.due_at <= this.#deps.clock.now()) this.#alarm.set(RETRY_MS, () => this.wake());
    else this.#deadline.set(next.due_at, () => this.wake());
  }
}
