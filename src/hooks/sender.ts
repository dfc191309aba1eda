// Sends the deliveries that are due, the earliest first, one at a time for each hook, so that one that does not answer
// holds up nobody else. Everything comes from the store: what a crash left between sending and writing that down is
// sent again, with the same id. Nothing is kept in memory but what is under way.
import type { Clock } from '../kernel/clock.js';
import { Alarm, ClockAlarm, pause, type Timers } from '../process/timers.js';
import type { Delivery, DeliveryOutcome, Store } from '../store/store.js';
import type { SendingHook } from './load-hooks.js';
import { post, type Fetch } from './post.js';
import { afterFailure, TRIED_FOR_MS } from './schedule.js';

// After a failure of the store.
const REST_MS = 5000;

export interface SenderDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly fetch: Fetch;
  // Others send, too: what is no hook here may be one there.
  readonly isShared?: boolean;
  // A try that failed, and when the next one is.
  readonly onFailed: (delivery: Delivery, error: string, nextAt: number) => void;
  readonly onGivenUp: (delivery: Delivery, error: string) => void;
  // Of the store, or of our own.
  readonly onFailure: (error: unknown) => void;
}

export class HookSender {
  readonly #deps: SenderDeps;
  readonly #hooks: ReadonlyMap<string, SendingHook>;
  // Hooks that are being sent to.
  readonly #busy = new Map<string, Promise<void>>();
  // Hooks of other hosts: what was taken by mistake is theirs again after a minute.
  readonly #unknown = new Set<string>();
  readonly #alarm: Alarm;
  readonly #due: ClockAlarm;
  readonly #stopListening: () => void;
  // Nothing new begins; what is under way is cut off.
  readonly #closing = new AbortController();
  readonly #stop = new AbortController();
  // One look at the store at a time, and at most one more after it.
  #looking: Promise<void> | null = null;
  #again = false;

  constructor(deps: SenderDeps, hooks: readonly SendingHook[]) {
    this.#deps = deps;
    this.#alarm = new Alarm(deps.timers);
    this.#due = new ClockAlarm(deps.clock, deps.timers);
    this.#hooks = new Map(hooks.map((hook) => [hook.name, hook]));
    this.#stopListening = deps.store.onCommitted(({ status }) => {
      if (status !== undefined) this.wake();
    });
    this.wake();
  }

  wake(): void {
    if (this.#closing.signal.aborted) return;
    this.#again = true;
    this.#looking ??= this.#lookWhileAsked();
  }

  async #lookWhileAsked(): Promise<void> {
    while (this.#again && !this.#closing.signal.aborted) {
      this.#again = false;
      await this.#look().catch((error: unknown) => {
        this.#deps.onFailure(error);
        this.#arm(REST_MS);
      });
    }
    this.#looking = null;
  }

  async #look(): Promise<void> {
    const { store, clock } = this.#deps;
    const busy = (): string[] => [...this.#busy.keys(), ...this.#unknown];
    for (
      let next = await store.nextDelivery(clock.now(), busy());
      next && !this.#closing.signal.aborted;
      next = await store.nextDelivery(clock.now(), busy())
    ) {
      const hook = this.#hooks.get(next.hook);
      if (hook) this.#begin(hook, next);
      else if (this.#deps.isShared && clock.now() < next.created_at + TRIED_FOR_MS) this.#unknown.add(next.hook);
      else
        await this.#settle(next, {
          type: 'given_up',
          at: clock.now(),
          error: `there is no webhook "${next.hook}" any more`,
        });
    }
    const at = await store.nextDeliveryAt(busy());
    this.#alarm.clear();
    if (at === null) this.#due.clear();
    else if (!this.#closing.signal.aborted) this.#due.set(at, () => this.wake());
  }

  #begin(hook: SendingHook, delivery: Delivery): void {
    const sent = this.#send(hook, delivery)
      .catch((error: unknown) => {
        // It may have arrived and is still due: not at once again.
        this.#deps.onFailure(error);
        return pause(this.#deps.timers, REST_MS, this.#closing.signal);
      })
      .finally(() => {
        this.#busy.delete(hook.name);
        this.wake();
      });
    this.#busy.set(hook.name, sent);
  }

  async #send(hook: SendingHook, delivery: Delivery): Promise<void> {
    const { clock, fetch, timers } = this.#deps;
    const error = await post({ fetch, timers, stop: this.#stop.signal }, hook, delivery, clock.now());
    // Cut off by our own end: no try of its own, it is due at the next start.
    if (error !== null && this.#stop.signal.aborted) return;
    await this.#settle(delivery, error === null ? { type: 'delivered' } : afterFailure(delivery, clock.now(), error));
  }

  async #settle(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    await this.#deps.store.settleDelivery(delivery.delivery_id, outcome);
    if (outcome.type === 'given_up') this.#deps.onGivenUp(delivery, outcome.error);
    if (outcome.type === 'retry') this.#deps.onFailed(delivery, outcome.error, outcome.at);
  }

  #arm(ms: number): void {
    if (!this.#closing.signal.aborted) this.#alarm.set(ms, () => this.wake());
  }

  // Begins nothing new. What is under way ends within its limit, at once if there is hurry.
  async close(hurry?: Promise<void>): Promise<void> {
    this.#closing.abort();
    this.#stopListening();
    this.#alarm.clear();
    this.#due.clear();
    void hurry?.then(() => this.#stop.abort());
    await this.#looking;
    await Promise.all(this.#busy.values());
  }
}
