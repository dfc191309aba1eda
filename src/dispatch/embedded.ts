// Dispatch within one process: as many turns at once as there are slots, oldest queued run first, and one timer for the
// earliest deadline. Everything comes from the store, so nothing is lost when the process is.
import type { Clock } from '../kernel/clock.js';
import { unlessDamaged } from '../kernel/stored-json.js';
import { Alarm, ClockAlarm, type Timers } from '../process/timers.js';
import type { Store } from '../store/store.js';
import type { Dispatch, DispatchHandlers } from './dispatch.js';

const RETRY_MS = 1000;
// Damage does not repair itself; the run is tried again in case somebody did.
const DAMAGED_MS = 3_600_000;

export interface EmbeddedDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
}

export class EmbeddedDispatch implements Dispatch {
  readonly #deps: EmbeddedDeps;
  readonly #handlers: DispatchHandlers;
  readonly #slots: number;
  readonly #turns = new Map<string, Promise<void>>();
  // Runs that could not be started just now, with what ends their rest early.
  readonly #resting = new Map<string, () => void>();
  readonly #alarm: Alarm;
  readonly #deadline: ClockAlarm;
  readonly #decides: boolean;
  #closing = false;
  // One look at the store at a time, and at most one more after it.
  #looking: Promise<void> = Promise.resolve();
  #next: Promise<void> | null = null;

  // `decides`: whether it looks after questions whose time is over, or somebody else does.
  constructor(
    deps: EmbeddedDeps,
    handlers: DispatchHandlers,
    slots: number,
    { decides = true }: { readonly decides?: boolean } = {},
  ) {
    this.#decides = decides;
    this.#deps = deps;
    this.#alarm = new Alarm(deps.timers);
    this.#deadline = new ClockAlarm(deps.clock, deps.timers);
    this.#handlers = handlers;
    this.#slots = slots;
  }

  wake(): void {
    this.#next ??= this.#looking.then(() => {
      this.#next = null;
      return this.#look();
    });
    this.#looking = this.#next;
  }

  idle(): Promise<void> {
    return this.#looking;
  }

  async close(): Promise<void> {
    this.#closing = true;
    this.#alarm.clear();
    this.#deadline.clear();
    for (const cancel of this.#resting.values()) cancel();
    await this.#looking;
    await Promise.all(this.#turns.values());
  }

  // Each step is tried whatever becomes of the others; after a failure everything is looked at again in a while.
  async #look(): Promise<void> {
    let failed = false;
    for (const step of this.#decides
      ? [() => this.#decideDue(), () => this.#fillSlots(), () => this.#arm()]
      : [() => this.#fillSlots()]) {
      if (this.#closing) return;
      try {
        await step();
      } catch (error) {
        failed = true;
        this.#handlers.onFailure(error);
      }
    }
    if (failed && !this.#closing) this.#alarm.set(RETRY_MS, () => this.wake());
  }

  async #fillSlots(): Promise<void> {
    if (this.#turns.size >= this.#slots) return;
    // Those under way may still be queued in the store: they are passed over.
    for (const runId of await this.#deps.store.claimQueued(this.#slots - this.#turns.size, [
      ...this.#turns.keys(),
      ...this.#resting.keys(),
    ])) {
      if (this.#turns.size >= this.#slots) return;
      const run = this.#turns.has(runId)
        ? null
        : await unlessDamaged(this.#deps.store.loadRun(runId), (damage) => this.#leave(runId, damage));
      if (this.#closing) return;
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

  // A damaged run must not hold up the runs behind it.
  #leave(runId: string, damage: Error): void {
    this.#handlers.onFailure(damage);
    this.#rest(runId, DAMAGED_MS);
  }

  #rest(runId: string, ms = RETRY_MS): void {
    if (this.#closing) return;
    const cancel = this.#deps.timers.set(ms, () => {
      this.#resting.delete(runId);
      this.wake();
    });
    this.#resting.set(runId, cancel);
  }

  // A deadline that passed while nobody was there is decided at once.
  async #decideDue(): Promise<void> {
    for (
      let next = await this.#deps.store.nextDecision();
      next && !this.#closing && next.due_at <= this.#deps.clock.now();
      next = await this.#deps.store.nextDecision()
    ) {
      if (!(await this.#handlers.decide(next))) return;
    }
  }

  async #arm(): Promise<void> {
    this.#alarm.clear();
    this.#deadline.clear();
    const next = await this.#deps.store.nextDecision();
    if (!next || this.#closing) return;
    // One that is due and still there was refused just now: it is tried again, but not at once.
    if (next.due_at <= this.#deps.clock.now()) this.#alarm.set(RETRY_MS, () => this.wake());
    else this.#deadline.set(next.due_at, () => this.wake());
  }
}
